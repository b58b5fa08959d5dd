"""An attempt that runs on this worker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from penstock.attempts.owned_attempt import OwnedAttempt


@dataclass(slots=True)
class Running:
    """A running attempt. `is_executing`: its task executor has it, so that it may have had effects. `cancelled`: its end was
    requested. `claim_lost`: its claim is lost, or may be. `known_to_be_lost`: the database confirmed that. `given_up`: the
    reason why this worker ends it, if not because it stops. `is_durable`: a durable function, which cleans up once its end was
    requested. `costs`: the true costs that it has reported so far, by unit."""

    attempt: OwnedAttempt
    task: asyncio.Task[None]
    is_executing: bool = False
    cancelled: bool = False
    claim_lost: bool = False
    known_to_be_lost: bool = False
    given_up: str | None = None
    is_durable: bool = False
    costs: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def may_begin(self) -> bool:
        """Return whether nothing has asked for the end of this attempt."""
        return not (self.cancelled or self.claim_lost or self.given_up is not None or self.task.cancelling())
