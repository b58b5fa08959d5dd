"""A part of a service lives until it is stopped, or the process ends with it, and says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock.errors import ConnectionFailed, PartEnded
from penstock.messaging.supervision import FAILURES, Supervisor


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    made = Supervisor(pause=0.0)
    yield made
    await made.stop(*made._parts)


class Part:
    """Does what it is told to, once each time that it runs, and then waits to be stopped."""

    def __init__(self, *does: BaseException | None) -> None:
        self.runs = 0
        self._does = list(does)

    async def run(self) -> None:
        self.runs += 1
        if not self._does:
            await asyncio.Event().wait()
        error = self._does.pop(0)
        if error is not None:
            raise error


PATIENCE = 60
"""Seconds on a machine that has much else to do."""


async def ends(supervisor: Supervisor) -> str:
    with pytest.raises(PartEnded) as caught:
        async with asyncio.timeout(PATIENCE):
            await supervisor.until(asyncio.Event())
    assert supervisor.failure is caught.value
    return caught.value.message


async def runs(part: Part, times: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while part.runs < times:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "error", [ValueError("odd"), StopAsyncIteration(), Exception(), EOFError()], ids=repr
)
async def test_a_part_that_fails_runs_again(supervisor: Supervisor, error: Exception) -> None:
    part = Part(error)
    supervisor.start("part", part.run)
    await runs(part, 2)
    assert supervisor.failure is None


async def test_a_part_that_a_library_cancels_runs_again(supervisor: Supervisor) -> None:
    part = Part(asyncio.CancelledError())
    supervisor.start("part", part.run)
    await runs(part, 2)
    assert supervisor.failure is None


async def test_a_part_that_returns_ends_the_process(supervisor: Supervisor) -> None:
    supervisor.start("part", Part(None).run)
    assert await ends(supervisor) == "part has ended: it returned"


async def test_a_cancelled_part_ends_the_process(supervisor: Supervisor) -> None:
    part = Part()
    task = supervisor.start("part", part.run)
    await runs(part, 1)
    task.cancel()
    assert await ends(supervisor) == "part has ended: it was cancelled"


async def test_a_part_that_fails_again_and_again_ends_the_process(supervisor: Supervisor) -> None:
    part = Part(*[ValueError("odd")] * 50)
    supervisor.start("part", part.run)
    assert await ends(supervisor) == "part has ended: ValueError: odd"
    assert part.runs == FAILURES


async def test_an_outage_is_no_reason_to_end(supervisor: Supervisor) -> None:
    part = Part(*[ConnectionFailed("away")] * (3 * FAILURES))
    supervisor.start("part", part.run)
    await runs(part, 3 * FAILURES + 1)
    assert supervisor.failure is None


async def test_a_stopped_released_or_done_part_may_end(supervisor: Supervisor) -> None:
    told = asyncio.Event()
    stopped = supervisor.start("stopped", Part().run)
    released = supervisor.start("released", told.wait)  # type: ignore[arg-type]
    done = supervisor.start("done", told.wait, until=told)  # type: ignore[arg-type]
    await supervisor.stop(stopped)
    supervisor.release(released)
    told.set()
    await asyncio.wait([released, done])
    await supervisor.until(told)
    assert stopped.cancelled()
    assert supervisor.failure is None
