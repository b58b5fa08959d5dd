"""Runs attempts of durable functions on a worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from penstock.client.result_watch import ResultWatch
from penstock.language.after_attempt import ending_of
from penstock.language.definitions.action import Action
from penstock.language.durable.drive import Attempt
from penstock.language.moves import REQUESTED
from penstock.messaging import broadcast
from penstock.run.outcomes import Outcome
from penstock.service.assembly import Parts
from penstock.service.heartbeat import Identity
from penstock_worker.claims import OwnedAttempt
from penstock_worker.durable.attempt_access import AttemptAccess
from penstock_worker.durable.recorder import Recorder
from penstock_worker.slots import Slots

Durable = Callable[[Mapping[str, Any]], Awaitable[Outcome]]


class DurableRuns:
    """`is_cancelled` says whether somebody asked for the end of an attempt that runs here; `noted` is told of one that
    was begun to clean up."""

    def __init__(
        self,
        parts: Parts,
        worker: Identity,
        slots: Slots,
        is_cancelled: Callable[[OwnedAttempt], bool],
        noted: Callable[[OwnedAttempt], None],
    ) -> None:
        self._settings = parts.settings
        self._slots = slots
        self._is_cancelled = is_cancelled
        self._noted = noted
        self._recorder = Recorder(
            parts.database.session,
            worker.id,
            parts.publisher.publish,
            lambda ids: broadcast.cancel_requested(parts.transport, ids),
        )
        self._watch = ResultWatch(parts.database.session())

    def of(self, owned: OwnedAttempt) -> Durable | None:
        """What runs this attempt; None if its action is not durable."""
        action = owned.version.action
        if not isinstance(action, Action) or not action.durable or action.function is None:
            return None
        access = AttemptAccess(
            owned.event,
            self._recorder,
            self._watch,
            free=lambda: self._slots.free > 0,
            asked_to_end=lambda: self._is_cancelled(owned),
            ends=lambda: self._noted(owned),
        )
        return Attempt(
            access,
            action.function,
            limit=self._settings.payload_cap,
            warm=self._settings.suspend_after,
            grace=self._settings.grace,
            retried=lambda outcome: (
                ending_of(outcome, owned.version.retry, owned.failures).status == REQUESTED
            ),
        ).run
