"""A decorator that repeats a test of a durable function, each time with a crash at another place."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.testing.durable_run import DurableRun

Test = Callable[..., Awaitable[None]]


def crash_everywhere(test: Test) -> Callable[..., None]:
    """Return a repeating test for `async def test_...(run: DurableRun, ...)`. Its other parameters are fixtures.

    The test runs once without a crash. Then it runs twice for each commit of the run, with a crash right before and
    right after the commit. Its assertions must hold each time, so it must create its counters anew each time. A
    failure names the place of the crash.
    """
    signature = inspect.signature(test)
    first, *fixture_parameters = signature.parameters.values()

    @functools.wraps(test)
    def everywhere(**fixtures: Any) -> None:
        asyncio.run(_everywhere(lambda run: test(**{first.name: run}, **fixtures)))

    everywhere.__signature__ = signature.replace(parameters=fixture_parameters)  # type: ignore[attr-defined]
    return everywhere


async def _everywhere(play: Callable[[DurableRun], Awaitable[None]]) -> None:
    run = DurableRun()
    await play(run)
    for point in range(2 * run.commits):
        crashed = DurableRun(crash_at=point)
        try:
            await play(crashed)
        except BaseException as error:
            error.add_note(
                f"The run was crashed {crashed.crashed or 'nowhere'} (crash {point + 1} of {2 * run.commits})."
            )
            raise
