"""Calls about an ended execution get the same answer before and after it is archived."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import NonRetryable, Workflow, action
from penstock.errors import PenstockError
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="past")
async def fails(v: int = 1) -> int:
    raise NonRetryable("no such order")


@action(pack="past")
async def works(v: int = 1) -> int:
    return v


def flow(name: str, does: str) -> Workflow:
    return from_yaml(f"""
workflow: past.{name}
tasks:
  t:
    {does}
  later:
    action: past.works
    needs: [t]
""")


FLOWS = [
    flow("failing", "action: past.fails"),
    flow("working", "action: past.works"),
    flow("nested", "workflow: past.working"),
]


async def answers(house: Installation, ids: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of the calls of a client about these executions, without the times in them."""
    client = house.client
    calls: dict[str, Any] = {
        "status": lambda id: client.get(id),
        "why t": lambda id: client.why(id, "t"),
        "why later": lambda id: client.why(id, "later"),
        "reschedule": lambda id: client.reschedule(id, delay=5, by="ada"),
        "priority": lambda id: client.set_priority(id, 3),
        "pause": lambda id: client.command(id, "pause", by="ada"),
        "skip": lambda id: client.command(id, "skip", task="t", by="ada"),
        "answer": lambda id: client.answer(id, 1, by="ada"),
        "signal": lambda id: client.signal(id, "s", 1),
    }
    texts: dict[str, Any] = {}
    for name, id in ids.items():
        for call, ask in calls.items():
            try:
                answer = await ask(id)
                text = str(getattr(answer, "status" if call == "status" else "because", answer))
            except PenstockError as error:
                text = f"{type(error).__name__}: {error.message}"
            texts[f"{call} of {name}"] = text
    return texts


async def test_answers_about_an_archived_execution_stay(house: Installation) -> None:
    await house.apply(fails, works, *FLOWS)
    await house.executor()
    await house.worker(fails, works, *FLOWS)
    ids = {
        name: await house.client.start(f"past.{name}") for name in ("failing", "working", "nested", "works")
    }
    await house.until("select 1 from execution having count(*) filter (where finished_at is null) = 0")
    before = await answers(house, ids)
    sentence = (await house.client.why(ids["failing"], "t")).sentence
    assert "no such order" in sentence
    await house.rows("select * from archive_finished(interval '0', 100)")
    assert not await house.rows("select 1 from execution")
    assert await answers(house, ids) == before
    assert "no such order" in (await house.client.why(ids["failing"], "t")).sentence
    assert "Conflict" in before["reschedule of works"]
