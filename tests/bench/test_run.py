"""A work that fails takes nothing else with it, and is named."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from rich.console import Console

from bench import run, session
from bench.figures import Measured
from bench.session import Session, Stalled
from bench.systems import System
from bench.works import WORKS, Work
from bench.works.effort import QUICK


class Running:
    about = {"version": "1", "orders": ["send"]}  # noqa: RUF012

    def can(self, order: str) -> bool:
        return order in self.about["orders"]


async def works(running: Session, effort: Any) -> Measured:
    return {"seconds": (1.0, "s")}


async def fails(running: Session, effort: Any) -> Measured:
    raise Stalled("no more of them\n  and what its log says")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    systems: list[str] = []

    @asynccontextmanager
    async def open_one(system: System, servers: Any) -> AsyncIterator[Running]:
        systems.append(system.name)
        if system.name == "absent":
            raise FileNotFoundError("its program is not there")
        yield Running()

    monkeypatch.setattr(session, "opened", open_one)
    for name, function in (("before", works), ("broken", fails), ("after", works)):
        monkeypatch.setitem(WORKS, name, Work(function, "send"))
    monkeypatch.setitem(WORKS, "other", Work(fails, "chain"))
    return systems


async def done(system: System, *names: str) -> run.Outcome:
    outcome = run.Outcome()
    await run._round(system, names, QUICK, cast(Any, None), outcome, Console(file=io.StringIO()))
    return outcome


async def test_the_works_after_one_that_failed_are_done_on_a_system_brought_up_anew(
    opened: list[str],
) -> None:
    outcome = await done(System("peer", "postgres"), "before", "broken", "other", "after")
    assert [figure.work for figure in outcome.figures] == ["before", "after"]
    assert outcome.failures == ["peer on postgres, broken: no more of them"]
    assert opened == ["peer", "peer"]


async def test_a_system_that_does_not_start_is_named_once(opened: list[str]) -> None:
    outcome = await done(System("absent", "postgres"), "before", "after")
    assert outcome.failures == ["absent on postgres, start: its program is not there"]
    assert not outcome.figures


async def test_a_work_in_which_a_system_takes_no_part_is_not_run(opened: list[str]) -> None:
    outcome = await done(System("peer", "sqlite", works=("before",)), "before", "broken")
    assert not outcome.failures
    assert [figure.work for figure in outcome.figures] == ["before"]
