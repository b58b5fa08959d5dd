"""The runs of attempts of durable functions on a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.secret_masking import conceal_step, passed_on
from penstock.engine.durable.attempt_run import Attempt
from penstock.language.definitions.action import Action
from penstock.language.moves import REQUESTED
from penstock.language.policies.after_attempt import ending_of
from penstock.language.terms.redaction import hidden_forms
from penstock.messaging import broadcast
from penstock.run.outcomes import Outcome
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock.service.process_secrecy import credentials
from penstock.store.executions.result_watch import ResultWatch
from penstock_worker.durable.attempt_access import AttemptAccess
from penstock_worker.durable.recorder import Recorder
from penstock_worker.records.backend import Durable
from penstock_worker.records.slots import Slots

ROLLOUT_S = 3600.0
"""Seconds after a change (`ctx.version`) in which an older worker leaves the run to newer ones (docs/decisions/0087)."""


class RunningAttempt(Protocol):
    """A running attempt, as the runner keeps it. `cancelled` says whether its end was requested, and `ends_at_once`
    whether that was requested once more."""

    attempt: OwnedAttempt
    cancelled: bool
    ends_at_once: bool


class DurableRuns:
    """The runs of durable functions. `running` are the attempts that run on this worker."""

    def __init__(
        self,
        parts: Parts,
        worker: Identity,
        slots: Slots,
        running: Mapping[UUID, RunningAttempt],
        watch: ResultWatch,
    ) -> None:
        self._settings = parts.settings
        self._own = hidden_forms(credentials(parts.settings))
        self._slots = slots
        self._running = running
        self._recorder = Recorder(
            parts.database.session,
            worker.id,
            parts.publisher.publish,
            lambda ids: broadcast.cancel_requested(parts.transport, ids),
        )
        self._watch = watch

    def of(self, owned: OwnedAttempt) -> Durable | None:
        """Return the driver of an attempt, or None if its action is not durable."""
        action = owned.version.action
        if not isinstance(action, Action) or not action.durable or action.function is None:
            return None
        access = AttemptAccess(
            owned.event,
            owned.traced,
            self._recorder,
            self._watch,
            conceal=lambda record: conceal_step(
                record, (*owned.secrets, *self._own), (*owned.of_store, *self._own)
            ),
            passed_on=lambda value: passed_on(value, owned.store_names, owned.of_store),
            free=lambda: self._slots.free > 0,
            asked_to_end=lambda: self._is_cancelled(owned),
            ends_at_once=lambda: self._ends_at_once(owned),
            ends=lambda: self._note_end(owned),
        )
        attempt = Attempt(
            access,
            action.function,
            limit=self._settings.payload_cap,
            warm=self._settings.suspend_after,
            grace=self._settings.grace,
            rollout=ROLLOUT_S,
            retried=lambda outcome: (
                ending_of(outcome, owned.version.retry, owned.failures).status == REQUESTED
            ),
        )

        async def run(arguments: Mapping[str, Any]) -> Outcome:
            try:
                return await attempt.run(arguments)
            finally:
                access.close()

        return run

    def _is_cancelled(self, owned: OwnedAttempt) -> bool:
        running = self._running_attempt(owned)
        return running is not None and running.cancelled

    def _ends_at_once(self, owned: OwnedAttempt) -> bool:
        running = self._running_attempt(owned)
        return running is not None and running.ends_at_once

    def _note_end(self, owned: OwnedAttempt) -> None:
        """Note that the attempt runs only to clean up, so that it cannot be cancelled again."""
        running = self._running_attempt(owned)
        if running is not None:
            running.cancelled = True

    def _running_attempt(self, owned: OwnedAttempt) -> RunningAttempt | None:
        running = self._running.get(owned.event.execution_id)
        return running if running is not None and running.attempt is owned else None
