"""Executions that wait for a human."""

from __future__ import annotations

import asyncio

import pytest

from penstock import AskInquiry, action
from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotFound
from penstock.ids import new_id
from tests.flows.installation import Installation


@action(pack="ops")
async def deploy(timeout: float = 60, default: bool | None = None) -> bool:
    raise AskInquiry("Deploy?", schema={"type": "boolean"}, assignee="ada", timeout=timeout, default=default)


WAITING = "select 1 from execution where id = $1 and status = 'waiting'"


async def test_an_answer_becomes_the_result_and_no_worker_is_held_meanwhile(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    assert not await house.rows("select 1 from claim")
    await house.client.answer(id, True, by="ada")
    assert await house.client.result(id, timeout=20) is True
    await house.quiet()
    await house.sound()


async def test_only_the_assignee_may_answer_and_only_what_fits(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    with pytest.raises(InvalidInput, match="ada"):
        await house.client.answer(id, True, by="bob")
    with pytest.raises(InvalidInput, match="boolean"):
        await house.client.answer(id, "yes", by="ada")
    with pytest.raises(NotFound):
        await house.client.answer(new_id(), True, by="ada")


async def test_two_answers_have_one_winner(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    answers = await asyncio.gather(
        *(house.client.answer(id, n % 2 == 0, by="ada") for n in range(6)), return_exceptions=True
    )
    assert [type(a) for a in answers].count(Conflict) == 5
    await house.sound()


async def test_without_an_answer_in_time_the_default_counts(house: Installation) -> None:
    await house.start(deploy)
    assert await house.client.run("ops.deploy", {"timeout": 0.2, "default": False}, timeout=20) is False


async def test_without_a_default_the_execution_times_out(house: Installation) -> None:
    await house.start(deploy)
    with pytest.raises(ExecutionFailed) as caught:
        await house.client.run("ops.deploy", {"timeout": 0.2}, timeout=20)
    assert caught.value.status == "timeout"


async def test_a_cancelled_inquiry_cannot_be_answered(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    await house.client.cancel(id)
    with pytest.raises(Conflict, match="cancelled"):
        await house.client.answer(id, True, by="ada")
    await house.sound()
