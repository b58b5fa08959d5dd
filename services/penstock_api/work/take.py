"""A call of a worker that waits for work."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from uuid import UUID

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock_api.work.remote_worker import RemoteWorker


def claim_of(worker: UUID, request: UUID) -> UUID:
    """Return the claim id of a take. The id is the same when the take is sent again, and no other worker can have
    it."""
    return UUID(bytes=hashlib.sha256(worker.bytes + request.bytes).digest()[:16], version=5)


@dataclass(slots=True, eq=False)
class Take:
    """A take that waits for at most `slots` attempts.

    Half of its wait is over at the monotonic time `ages_at`. `is_brief`: it is answered within moments, and gets no
    permit. `turn` is held while work is claimed for it. The take may have permits on the queues `permitted`.
    `may_have_more`: one of its permits has gone, so work may be assigned to it that it does not have yet. `calls` is
    the number of calls that had looked its claim up, this call included. `is_shared`: other calls had looked it up.
    `is_replaced`: the worker has sent the take to this gateway again, and the later call answers."""

    worker: RemoteWorker
    claim: UUID
    slots: int
    ages_at: float = 0.0
    is_brief: bool = False
    attempts: list[OwnedAttempt] = field(default_factory=list)
    closed: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    permitted: set[str] = field(default_factory=set)
    calls: int = 0
    is_shared: bool = False
    is_replaced: bool = False
    may_have_more: bool = False

    @property
    def waits(self) -> bool:
        return not self.closed.done()

    def close(self) -> None:
        """End the wait of this take."""
        if not self.closed.done():
            self.closed.set_result(None)

    def has_looked_up(self, calls: int) -> None:
        """Note that this call has looked up its claim, as call number `calls`."""
        self.is_shared = self.is_shared or calls > self.calls + 1
        self.calls = calls
