"""Tasks that wait for the answers of humans."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotAllowed, NotFound
from penstock.operate.executions import described
from tests.flows.installation import Installation
from tests.flows.waits import ALL, waiting

pytestmark = pytest.mark.either_transport


async def test_the_answer_to_an_inquiry_is_the_result_of_its_task(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.asking", {"who": "Bob"})
    task = await waiting(house, run)
    [inquiry] = await house.rows("select prompt, assignee, schema::text as schema, due_at from inquiry")
    assert (inquiry["prompt"], inquiry["assignee"], orjson.loads(inquiry["schema"])) == (
        "May Bob pass?",
        "ada",
        {"type": "boolean"},
    )
    with pytest.raises(NotFound) as elsewhere:
        await house.client.answer(run, True, by="ada")
    assert elsewhere.value.hint == f"Its task ask asks: penstock answer {task} ANSWER."
    with pytest.raises(NotAllowed, match="ada"):
        await house.client.answer(task, True, by="bob")
    with pytest.raises(InvalidInput, match="boolean"):
        await house.client.answer(task, 3, by="ada")
    answers = await asyncio.gather(
        *(house.client.answer(task, n % 2 == 0, by="ada") for n in range(4)), return_exceptions=True
    )
    assert [type(a) for a in answers].count(Conflict) == 3
    assert await house.client.result(run, timeout=30) is (answers[0] is None or answers[2] is None)
    await house.quiet()
    await house.sound()


async def test_a_run_that_waits_for_a_human_waits_and_does_not_run(house: Installation) -> None:
    await house.start(*ALL)
    run = await house.client.start("wf.asking", {"who": "Bob"})
    task = await waiting(house, run)
    await asyncio.sleep(0.3)
    await house.client.answer(task, True, by="ada")
    assert await house.client.result(run, timeout=30) is True
    description = await described(house.session, run)
    assert description is not None
    whole = (description["finished_at"] - description["created_at"]).total_seconds()
    assert description["ran"] < 0.3 <= description["waited"]
    assert description["ran"] + description["waited"] == pytest.approx(whole, abs=0.01)


async def test_without_an_answer_in_time_the_default_is_the_result(house: Installation) -> None:
    await house.start(*ALL)
    assert await house.client.run("wf.defaulting", {"default": 7}, timeout=30) == 7


async def test_a_default_that_is_not_an_answer_fails_the_task_unasked(
    house: Installation,
) -> None:
    await house.start(*ALL)
    with pytest.raises(ExecutionFailed, match=r"default answer.*ask"):
        await house.client.run("wf.defaulting", {"default": "many"}, timeout=30)
    assert not await house.rows("select 1 from inquiry")
    await house.sound()


async def test_without_a_default_the_task_times_out(house: Installation) -> None:
    await house.start(*ALL)
    with pytest.raises(ExecutionFailed, match="got no answer in time"):
        await house.client.run("wf.defaulting", {"default": None}, timeout=30)


async def test_cancelling_the_workflow_withdraws_its_inquiry(house: Installation) -> None:
    await house.start(*ALL)
    asking = await house.client.start("wf.asking", {"who": "Bob"})
    order = await house.client.start("wf.order", {"order": 1})
    task = await waiting(house, asking)
    await waiting(house, order)
    assert await house.client.cancel(asking, order) == 2
    await house.quiet()
    assert set(await house.statuses()) == {"cancelled", "completed"}
    with pytest.raises(Conflict, match="cancelled"):
        await house.client.answer(task, True, by="ada")
    assert not await house.rows("select 1 from event_wait")
    await house.sound()
