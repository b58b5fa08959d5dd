"""The audit of refused requests. A flood of them writes a bounded number of rows, whatever names and addresses it
uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from penstock.store.session import audited_change
from penstock_api.session_pool import SessionPool

log = structlog.get_logger()

WINDOW = 60.0
"""The seconds in which further refusals of the same caller are only counted."""
MOST_CALLERS = 50
"""The number of callers with their own rows in a window. All others share one row."""
OTHERS = "others"


def _after_window(end: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(WINDOW, end)


@dataclass(slots=True)
class Refusals:
    """The refusals of one caller since its last row."""

    change: audited_change.Change
    count: int = 0


class RefusedCalls:
    """The refusals of one process. The first refusal of a caller is audited at once. The others of its window are one
    row when it ends."""

    def __init__(
        self, pool: SessionPool, after_window: Callable[[Callable[[], None]], None] = _after_window
    ) -> None:
        self._pool = pool
        self._after_window = after_window
        self._refusals: dict[tuple[str, str], Refusals] = {}
        self._writing: set[asyncio.Task[None]] = set()

    async def note(self, by: str | None, address: str, operation: str, target: str, reason: str) -> None:
        """Audit a refusal, or count it. `by` is the caller's name if its token or session is known."""
        key = (by, operation) if by is not None else (f"address:{address}", "")
        if key not in self._refusals and len(self._refusals) >= MOST_CALLERS:
            key = (OTHERS, "")
        is_first = key not in self._refusals
        details = {"address": address}
        change = audited_change.Change(key[0], operation, target, reason, details)
        refusals = self._refusals.setdefault(key, Refusals(change))
        refusals.change, refusals.count = change, refusals.count + 1
        if is_first:
            if len(self._refusals) == 1:
                self._after_window(self._end)
            await self._write(refusals)

    def _end(self) -> None:
        """Begin a new window, and write the counts of the last one."""
        counted = [refusals for refusals in self._refusals.values() if refusals.count]
        self._refusals.clear()
        for refusals in counted:
            task = asyncio.create_task(self._write(refusals), name="refused calls")
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _write(self, refusals: Refusals) -> None:
        """Write an audit row. If the database fails, the answer is unchanged, and the log has the refusal."""
        count, refusals.count = refusals.count, 0
        change = refusals.change
        change.details["count"] = count
        try:
            async with self._pool.session() as session:
                await audited_change.note(session, change, audited_change.REFUSED)
        except Exception as error:
            log.warning("api.refusal_not_noted", name=change.by, count=count, reason=str(error))

    async def close(self) -> None:
        """Write the counts that are not written yet."""
        self._end()
        await asyncio.gather(*self._writing)
