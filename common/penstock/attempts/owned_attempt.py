"""An attempt that a worker owns, with the data for its run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from penstock.attempts.action_versions import ActionVersion
from penstock.attempts.new_effect import NewEffect
from penstock.attempts.traced_attempt import TracedAttempt, traced
from penstock.language.policies.after_attempt import Ending
from penstock.language.rules.secret_references import KEY
from penstock.language.terms import stored_references
from penstock.language.terms.redaction import LIVE, hidden_forms, worth_hiding
from penstock.run.task_executors import TaskReadyEvent
from penstock.service.heartbeat import Identity
from penstock.store.executions.attempts import AttemptEnd, ClaimedAttempt
from penstock.store.session import sealed_marks

if TYPE_CHECKING:
    from penstock.store.session.codec import Codec


@dataclass(slots=True)
class OwnedAttempt:
    """An attempt that a worker has claimed, ready to run. `failures` counts earlier failed attempts of its
    execution."""

    event: TaskReadyEvent
    version: ActionVersion
    failures: int
    claim: UUID
    params: Mapping[str, Any]
    carry: Mapping[str, Any]
    context: Mapping[str, Any]
    waited: float
    """The seconds since the execution became ready, on the database's clock."""
    of_route: str | None = None
    """The task executor of the route by which the attempt came, or None."""
    secrets: tuple[str, ...] = ()
    """The texts that the attempt's log and error must not show."""
    traced: TracedAttempt | None = None
    refers: bool = False
    """True if the parameters refer to secrets or to stored results, which are read before the run."""
    of_store: tuple[str, ...] = ()
    """The texts in `secrets` that are from the secret store, which the result must not show either."""
    store_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the store's secrets by their values, longest value first, to store them as references when they are
    passed on."""
    named_secrets: Mapping[str, str] = field(default_factory=dict)
    """The stored secrets that the action's options name, by the names that its templates use."""
    token: str | None = None
    """The attempt's token for the API, or None."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the execution, if its action groups batches by a label; otherwise empty."""
    effects: list[NewEffect] = field(default_factory=list)
    """The transactional requests of the attempt in order."""

    def ended(self, ending: Ending) -> AttemptEnd:
        """Return the end of the attempt as it is stored."""
        event = self.event
        return AttemptEnd(
            event.execution_id, event.attempt, ending, self.version.followed, event.workflow, event.task
        )


def owned_attempt(
    attempt: ClaimedAttempt,
    version: ActionVersion,
    worker: Identity,
    *,
    codec: Codec | None,
    claim: UUID,
    of_route: str | None = None,
) -> OwnedAttempt:
    """Return the attempt that a worker has claimed, with the options of its execution. `codec` is that of the session
    that read the attempt."""
    options: Mapping[str, Any] = {}
    if attempt.options is not None:
        options = orjson.loads(attempt.options)
        version = version.with_options(options)
    params = orjson.loads(attempt.params)
    event = TaskReadyEvent(
        execution_id=attempt.execution_id,
        attempt=attempt.attempt,
        max_attempts=version.retry.max_attempts,
        namespace=attempt.namespace,
        action=version.action.ref,
        root=attempt.root or attempt.execution_id,
        workflow=attempt.workflow,
        task=attempt.task,
    )
    is_encrypted = codec is not None and codec.seals(attempt.namespace.partition("::")[0])
    return OwnedAttempt(
        event=event,
        version=version,
        failures=attempt.failures,
        claim=claim,
        params=params,
        carry=orjson.loads(attempt.carry) if attempt.carry else {},
        context=options.get("context") or {},
        waited=attempt.waited,
        of_route=of_route,
        refers=KEY in params or stored_references.KEY in attempt.params or sealed_marks.KEY in params,
        secrets=_hidden(version.parameters.secrets_of(params)),
        labels=attempt.labels,
        traced=traced(attempt.trace, event, worker, tells=not is_encrypted),
    )


def share_secrets(attempts: Sequence[OwnedAttempt]) -> None:
    """Let the attempts of one call mask the secrets of all attempts of that call."""
    if not any(attempt.secrets or attempt.of_store for attempt in attempts):
        return
    secrets = worth_hiding(text for attempt in attempts for text in attempt.secrets)
    of_store = worth_hiding(text for attempt in attempts for text in attempt.of_store)
    names = {value: name for attempt in attempts for value, name in attempt.store_names.items()}
    longest_first = {value: names[value] for value in sorted(names, key=len, reverse=True)}
    for attempt in attempts:
        attempt.secrets, attempt.of_store, attempt.store_names = secrets, of_store, longest_first


def _hidden(secrets: Collection[str]) -> tuple[str, ...]:
    """Return the texts that no output of the attempt may show. From now on, this process masks these secrets in
    everything that it writes."""
    if not secrets:
        return ()
    LIVE.hide(secrets)
    return hidden_forms(secrets)
