"""A run reports its progress, and a reader sees the latest report."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from penstock.language.definitions import action
from penstock.run.context import current
from penstock.run.progress import Progress
from penstock.testing import Simulation
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

READ = asyncio.Event()


@action(pack="far")
async def copy(pages: int, wait: bool = False) -> str:
    for page in range(pages):
        current().progress(page / pages, f"page {page + 1}\nof {pages}")
    if wait:
        await READ.wait()
    current().log("done")
    return "copied"


@pytest.mark.parametrize("line", [Progress(0.0), Progress(0.4, "page 3 of 7"), Progress(1.0, "1 2")])
def test_a_line_says_it_and_is_read(line: Progress) -> None:
    assert Progress.read(line.line()) == line


@pytest.mark.parametrize("done", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_number_outside_0_and_1_is_refused(done: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Progress(done).line()


def test_a_simulation_has_it_apart_from_the_log() -> None:
    [step] = Simulation(copy).run(copy, pages=2).steps
    assert step.progress == [(0.0, "page 1 of 2"), (0.5, "page 2 of 2")]
    assert step.log == ["done"]


async def test_it_is_shown_while_the_run_goes_on(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    async with Installation(database, None) as house:
        await house.start(copy)
        id = await house.client.start(copy, {"pages": 4, "wait": True})
        assert (await _shown(id))["text"] == "page 4 of 4"
        assert "75% page 4 of 4" in (await penstock("show", id)).out
        READ.set()
        assert await house.client.result(id, timeout=20) == "copied"


async def _shown(id: UUID) -> dict[str, object]:
    for _ in range(200):
        said: dict[str, object] | None = (await penstock("show", id, "--json")).document["progress"]
        if said is not None:
            return said
        await asyncio.sleep(0.05)
    raise AssertionError("no progress is shown")
