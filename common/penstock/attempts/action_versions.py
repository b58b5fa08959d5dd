"""The versions of actions for which this worker has the code, with the run options of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from penstock.language.definitions.action import Action
from penstock.language.definitions.batch import Batch
from penstock.language.policies.policies import DEFAULT_ATTEMPT_TIMEOUT, Recovery, RetryPolicy
from penstock.language.schemas import Schema
from penstock.language.terms import labels
from penstock.language.terms.executor_names import REMOTE
from penstock.run.task_executors import RunnableAction
from penstock.service.heartbeat import Identity
from penstock.store.definitions import catalog
from penstock.store.session.database import Session

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ActionVersion:
    """A version of an action. `timeout` is that of an attempt, in seconds. `followed`: callbacks follow its end."""

    action: RunnableAction
    retry: RetryPolicy
    recovery: Recovery
    timeout: float | None
    followed: bool
    parameters: Schema
    batch: Batch | None = None
    """The batch of the code. The wait is at most that of the definition, to which executors add the timeout."""

    def with_options(self, options: Mapping[str, Any]) -> ActionVersion:
        """Return this version with the options of one execution, or of its task in a workflow."""
        retry, recovery, timeouts = (
            options.get("retry"),
            options.get("recovery"),
            options.get("timeouts") or {},
        )
        return ActionVersion(
            action=self.action,
            retry=RetryPolicy.model_validate(retry) if retry else self.retry,
            recovery=Recovery.model_validate(recovery) if recovery else self.recovery,
            timeout=timeouts.get("attempt", self.timeout),
            followed=self.followed,
            parameters=self.parameters,
            batch=self.batch,
        )


class ActionVersions:
    """The versions that this worker has met, by their definition ids. Each is looked up once, since a definition never
    changes."""

    def __init__(
        self, session: Session, worker: Identity, actions: Callable[[str], RunnableAction | None]
    ) -> None:
        self._session = session
        self._labels = worker.labels
        self._actions = actions
        self._found: dict[int, ActionVersion] = {}
        self._lacking: set[int] = set()
        self.known: list[int] = []
        """The definition ids of the versions that this worker can run."""
        self.batching: list[int] = []
        """The definition ids of those that take batches."""
        self.by_labels: list[int] = []
        """The definition ids of those that group their batches by labels."""

    @property
    def lacking(self) -> list[int]:
        """Return the definition ids of the versions that this worker cannot run."""
        return list(self._lacking)

    def __getitem__(self, definition: int) -> ActionVersion:
        return self._found[definition]

    async def look_up(self, definitions: Sequence[int]) -> None:
        """Find out for which of these definitions this worker has the code and the labels."""
        bodies = await catalog.bodies(self._session, definitions)
        for definition in definitions:
            body = bodies.get(definition)
            action = self._actions(body["ref"]) if body and self._has_labels(body) else None
            if body is None or action is None:
                self._lacking.add(definition)
                # A program outside this process has the code.
                if body is None or body.get("executor") != REMOTE:
                    log.warning(
                        "worker.lacks_action", definition_id=definition, action=body and body.get("ref")
                    )
            else:
                self._found[definition] = version_of(action, body)
        self.known = sorted(self._found)
        batches = {definition: self._found[definition].batch for definition in self.known}
        self.batching = [definition for definition, batch in batches.items() if batch is not None]
        self.by_labels = [definition for definition, batch in batches.items() if batch and batch.by_labels]

    def _has_labels(self, body: Mapping[str, Any]) -> bool:
        return labels.carries_all(body.get("labels") or {}, self._labels)


def version_of(action: RunnableAction, body: Mapping[str, Any]) -> ActionVersion:
    timeouts = body.get("timeouts") or {}
    return ActionVersion(
        action=action,
        retry=RetryPolicy.model_validate(body.get("retry") or {}),
        recovery=Recovery.model_validate(body.get("recovery") or {}),
        timeout=timeouts.get("attempt", DEFAULT_ATTEMPT_TIMEOUT),
        followed=bool(body.get("on_success") or body.get("on_failure")),
        parameters=Schema(body.get("parameters")),
        batch=_batch_of(action, body),
    )


def _batch_of(action: RunnableAction, body: Mapping[str, Any]) -> Batch | None:
    batch = action.choices.batch if isinstance(action, Action) else None
    if batch is None:
        return None
    within = min(batch.within, (body.get("batch") or {}).get("within", 0))
    return batch.model_copy(update={"within": within})
