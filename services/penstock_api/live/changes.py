"""The changes for all watchers of this process. While there is a watcher, one query reads the history each quarter of
a second.

A LISTEN would need a NOTIFY in every transaction, and PostgreSQL serializes the commits of such transactions. A poll
adds no NOTIFY, and shows a change a quarter of a second later. A move has the instant of its statement, and becomes
visible when its transaction commits. So each query goes back to the moves that were under way at the previous query,
and omits those that were delivered.
"""

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
"""The seconds between two queries. Of several moves of an execution in between only the last is delivered."""
OVERLAP = timedelta(seconds=2)
"""The maximum time after its own instant at which a move may become visible."""
MOST = 2000
"""The maximum number of moves that one query delivers. If there are more, watchers are told to read the state
themselves."""
PAUSE, SHARE, LONGEST = 3.0, 0.005, 30.0
"""The schedule after such an overload. Watchers are told again every PAUSE seconds. The next query waits until the
last one took only SHARE of the time, at most LONGEST seconds, since such large queries load the database and help no
watcher."""
USUAL_SHARE, LATELY = 0.1, 5
"""The maximum share of the time that queries take otherwise. It is measured by the shortest of the last LATELY, since
a query is slow while the index of the history is being brought up to date."""
LONG_AGO = timedelta(minutes=5)
"""The age of a watcher's last change, above which it is told to read the state itself."""
BEHIND = 100
"""The maximum number of undelivered turns of a watcher."""

Turn = list[Change] | None
"""The changes since the previous turn. None: too many, so the watcher has to read the state itself."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The filter of a watcher: the moves of these tenants (None: of all), of one execution and its tasks, of one
    action."""

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
        """Yield the changes of the next `seconds`. With `since`, an instant that another replica may have returned,
        first yield the changes from then on.

        The first turn is empty. Every change after it is delivered, occasionally twice.
        """
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
        """Return whether the query loop runs: a client watches, or did a moment ago."""
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
        """Query and deliver changes until no client watches."""
        delivered: set[Change] = set()
        at: datetime | None = None
        missed = False
        durations: deque[float] = deque(maxlen=LATELY)
        loop = asyncio.get_running_loop()
        while self._watching:
            began = loop.time()
            try:
                settled = await changes.settled(self._session, OVERLAP.total_seconds())
                if at is None:  # changes before the first query are not delivered to the pages
                    at = settled
                    self._begun.set()
                    if missed:  # moves before this query are unknown
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
            while not queue.empty():  # the watcher is too slow, so it starts again
                queue.get_nowait()
            queue.put_nowait(None)


def _last(batch: list[Change]) -> Turn:
    """Return the last change of each execution, oldest first, or None if there are too many."""
    if len(batch) > MOST:
        return None
    return list({change.id: change for change in batch}.values())


def _only(turn: Turn, watched: Watched) -> Turn:
    return None if turn is None else [change for change in turn if change in watched]
