"""The changes for all watchers of this process: one query of the history each quarter of a second, while a watcher exists. A
LISTEN would need a NOTIFY of every transaction that commits, and all commits of a database wait in line for that. So no
NOTIFY is added, and a change is seen a quarter of a second later. A move is written with the instant of its statement and
seen when its transaction commits. So each look goes back to the moves that were under way at the one before, and leaves out
those that were told already."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from penstock.service.assembly import cancel
from penstock.store.executions import changes
from penstock.store.executions.changes import Change
from penstock.store.session import clock
from penstock.store.session.database import Session, is_transient

log = structlog.get_logger()

TURN = 0.25
"""Seconds between two looks. What an execution did in between is told as one change, its last."""
OVERLAP = timedelta(seconds=2)
"""How much later than its instant a move may be seen, at the most."""
MOST = 2000
"""Moves of one look. Where there are more, nobody could follow: who watches is told to look for itself."""
PAUSE, SHARE, LONGEST = 3.0, 0.005, 30.0
"""Then they are told so again each so many seconds, and nobody looks until the look was but this share of the time, or for so
many seconds at the most: reading so much costs the database something, and helps nobody."""
USUAL_SHARE, LATELY = 0.1, 5
"""Of the time that looks take otherwise, at the most, by the shortest of so many: much may have been written since the index of
the history was brought up to date."""
LONG_AGO = timedelta(minutes=5)
"""After so long somebody who comes back is told to look for itself."""
BEHIND = 100
"""Turns that somebody who watches may be behind."""

Turn = list[Change] | None
"""What changed since the turn before; None: too much to tell."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The moves that a watcher asks for: those of these tenants (None: of all), of one execution and its tasks, of
    one action."""

    tenants: Collection[str] | None = None
    execution: UUID | None = None
    action: str | None = None

    def __contains__(self, change: Change) -> bool:
        return (
            (self.tenants is None or change.tenant in self.tenants)
            and (self.execution is None or self.execution in (change.id, change.parent))
            and (self.action is None or change.action == self.action)
        )


class Changes:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._watching: set[asyncio.Queue[Turn]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self.closed = asyncio.Event()

    async def watch(
        self, watched: Watched, *, seconds: float, since: datetime | None = None
    ) -> AsyncGenerator[Turn, None]:
        """Yield the changes of so many `seconds`, from `since` on, if it is given: an instant that another replica
        may have returned. The first turn is empty: what changes after that is told, now and then twice."""
        until = asyncio.get_running_loop().time() + seconds
        queue: asyncio.Queue[Turn] = asyncio.Queue(BEHIND)
        self._watching.add(queue)
        if not self.looking:
            self._begun.clear()
            self._looking = asyncio.create_task(self._look(), name="changes")
        try:
            async with asyncio.timeout_at(until):
                await self._begun.wait()
            if self.closed.is_set():
                return
            yield []
            if since is not None:
                yield _only(await self._since(since), watched)
            while not self.closed.is_set():
                async with asyncio.timeout_at(until):
                    turn = _only(await queue.get(), watched)
                if turn is None or turn:
                    yield turn
        except TimeoutError:
            return
        finally:
            self._watching.discard(queue)

    def watching(self) -> int:
        """Return the number of watchers."""
        return len(self._watching)

    @property
    def looking(self) -> bool:
        """Return whether a client watches, or did a moment ago."""
        return self._looking is not None and not self._looking.done()

    async def close(self) -> None:
        """End every watch."""
        self.closed.set()
        self._begun.set()
        self._tell([])
        if self._looking is not None:
            await cancel(self._looking)

    async def _since(self, since: datetime) -> Turn:
        if await clock.now(self._session) - since > LONG_AGO:
            return None
        return _last(await changes.after(self._session, since - OVERLAP, MOST + 1))

    async def _look(self) -> None:
        """Look until no client watches any more."""
        delivered: set[Change] = set()
        at: datetime | None = None
        missed = False
        durations: deque[float] = deque(maxlen=LATELY)
        loop = asyncio.get_running_loop()
        while self._watching:
            began = loop.time()
            try:
                settled = await changes.settled(self._session, OVERLAP.total_seconds())
                if at is None:  # no watcher is told of a change before its watch
                    at = settled
                    self._begun.set()
                    if missed:  # moves before this are unknown by now
                        self._tell(None)
                batch = await changes.after(self._session, at, MOST + len(delivered) + 1)
            except Exception as error:
                if not is_transient(error):
                    log.error("changes.failed", exc_info=error)
                missed = True
                await asyncio.sleep(TURN)
                continue
            new = [change for change in batch if change not in delivered]
            at = max(at, settled)
            delivered = {change for change in (*delivered, *new) if change.at > at}
            if new:
                self._tell(_last(new))
            durations.append(loop.time() - began)
            if len(new) > MOST:
                for _ in range(math.ceil(min(LONGEST, durations[-1] / SHARE) / PAUSE)):
                    await asyncio.sleep(PAUSE)
                    self._tell(None)
                at, missed = None, True
            await asyncio.sleep(max(TURN, min(durations) / USUAL_SHARE))

    def _tell(self, turn: Turn) -> None:
        for queue in self._watching:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait(turn)
                continue
            while not queue.empty():  # it has fallen behind, and starts anew
                queue.get_nowait()
            queue.put_nowait(None)


def _last(batch: list[Change]) -> Turn:
    """The last of each execution, oldest first; None where there are too many."""
    if len(batch) > MOST:
        return None
    return list({change.id: change for change in batch}.values())


def _only(turn: Turn, watched: Watched) -> Turn:
    return None if turn is None else [change for change in turn if change in watched]
