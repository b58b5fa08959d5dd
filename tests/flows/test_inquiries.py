"""Executions that wait for a human."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock import AskInquiry, Limit, action, current
from penstock.client.inquiries import listed
from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotAllowed, NotFound
from penstock.language.terms.ids import new_id
from penstock.messaging import envelope
from penstock.run import steering
from tests.flows.installation import Installation
from tests.penstock.messaging.transports.broker import plain_pika


@action(pack="ops")
async def deploy(timeout: float = 60, default: bool | None = None) -> bool:
    raise AskInquiry("Deploy?", schema={"type": "boolean"}, assignee="ada", timeout=timeout, default=default)


@action(pack="ops")
async def ask() -> str:
    raise AskInquiry("Anybody?")


@action(pack="ops")
async def launch() -> dict[str, Any]:
    name = await steering.ask("Who?", schema={"type": "string"})
    when = await steering.ask(f"When, {name}?", timeout=0.3, default="now")
    return {"who": name, "when": when, "attempt": current().attempt}


@action(pack="ops", limits=[Limit(1)], retry={"max_attempts": 2, "initial_delay": 0.01})
def land() -> list[str]:
    if not current().answers:
        raise AskInquiry("Where?", resume=True)
    if current().attempt == 2:
        raise ConnectionError("fog")
    return list(current().answers)


ANSWER = "select moved from answer_inquiry($1, 'true', 'ada')"
EXPIRE = "select expired from expire_inquiries(10)"
CANCEL = "select * from cancel_executions(array[$1::uuid], 'asked')"
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


async def test_only_the_assignee_may_answer_and_only_a_fitting_answer(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    with pytest.raises(NotAllowed, match="ada"):
        await house.client.answer(id, True, by="bob")
    with pytest.raises(InvalidInput, match="boolean") as refused:
        await house.client.answer(id, "yes", by="ada")
    assert refused.value.hint == "Answer true or false."
    with pytest.raises(NotFound):
        await house.client.answer(new_id(), True, by="ada")


async def test_an_action_goes_on_with_its_answers(house: Installation) -> None:
    await house.start(launch, land)
    id = await house.client.start("ops.launch")
    await house.until(WAITING, id)
    [first] = await listed(house.session)
    meant = first.created_at
    answers = await asyncio.gather(
        *(house.client.answer(id, name, by=name, asked=meant) for name in ("ada", "bob")),
        return_exceptions=True,
    )
    assert [type(a) for a in answers].count(Conflict) == 1
    answerer = "bob" if isinstance(answers[0], Conflict) else "ada"
    await house.until(
        "select 1 from inquiry where execution_id = $1 and prompt = $2", id, f"When, {answerer}?"
    )
    assert await house.client.result(id, timeout=20) == {"who": answerer, "when": "now", "attempt": 3}
    assert [attempt.outcome for attempt in await house.client.attempts(id)] == [
        "waiting",
        "waiting",
        "completed",
    ]

    ids = [await house.client.start("ops.land") for _ in range(2)]
    for id in ids:  # under a limit of one, which a waiting execution does not hold
        await house.until(WAITING, id)
    for id in ids:
        await house.client.answer(id, "here", by="ada")
    assert [await house.client.result(id, timeout=20) for id in ids] == [["here"], ["here"]]
    assert [attempt.outcome for attempt in await house.client.attempts(ids[0])] == [
        "waiting",
        "failed",
        "completed",
    ]
    other = await house.client.start("ops.land")
    await house.until(WAITING, other)
    await house.client.cancel(other)
    with pytest.raises(Conflict):
        await house.client.answer(other, "here", by="ada")
    await house.quiet()
    await house.sound()


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


async def test_an_execution_may_not_answer_its_own_inquiry(house: Installation) -> None:
    await house.start(ask)
    id = await house.client.start("ops.ask")
    await house.until(WAITING, id)
    with pytest.raises(InvalidInput, match="its own"):
        await house.client.answer(id, "yes", by=f"execution:{id}")
    await house.client.answer(id, "yes", by="anybody")
    assert await house.client.result(id, timeout=20) == "yes"


async def test_an_answer_and_the_end_of_its_time_have_one_winner_and_wait_for_no_circle(
    house: Installation,
) -> None:
    await house.apply(deploy)
    await house.worker(deploy)
    one, other = await house.parts(), await house.parts()
    executor = await house.executor()
    for first in (ANSWER, EXPIRE):
        id = await house.client.start("ops.deploy", {"default": False})
        await house.until(WAITING, id)
        executor.ask()  # no other process looks at the time from here on
        await house.until("select 1 where not exists (select from process where kind = 'executor')")
        await house.rows(
            "update inquiry set due_at = clock_timestamp() where execution_id = $1 returning 1", id
        )
        second = EXPIRE if first is ANSWER else ANSWER
        async with one.database.session().transaction() as tx:
            [[won]] = await tx.fetch(first, *([id] if first is ANSWER else []))
            race = asyncio.create_task(
                other.database.session().fetch(second, *([id] if second is ANSWER else []))
            )
            if second is ANSWER:  # it waits for the row; the look for overdue inquiries skips it
                await house.until("select 1 from pg_stat_activity where wait_event_type = 'Lock' "
                                  "and datname = current_database()")  # fmt: skip
            else:
                assert [tuple(row) for row in await race] == [([],)]
        [[rows]] = await race
        assert won == [id]
        assert rows == []
        [row] = await house.rows("select status, responder from inquiry where execution_id = $1", id)
        assert row["responder"] == ("ada" if first is ANSWER else "its default")
        executor = await house.executor()
    await house.quiet()
    await house.sound()


async def test_an_answer_and_a_cancellation_have_one_winner(house: Installation) -> None:
    await house.start(deploy)
    one, other = await house.parts(), await house.parts()
    for first, second in ((ANSWER, CANCEL), (CANCEL, ANSWER)):
        id = await house.client.start("ops.deploy")
        await house.until(WAITING, id)
        async with one.database.session().transaction() as tx:
            await tx.fetch(first, id)
            race = asyncio.create_task(other.database.session().fetch(second, id))
            await house.until("select 1 from pg_stat_activity where wait_event_type = 'Lock' "
                              "and datname = current_database()")  # fmt: skip
        assert not any((await race)[0])
        [row] = await house.rows(
            "select e.status, i.status as inquiry from execution e join inquiry i on i.execution_id = e.id where e.id = $1",
            id,
        )
        assert tuple(row) == (("completed", "responded") if first is ANSWER else ("cancelled", "cancelled"))
    await house.quiet()
    await house.sound()


async def test_an_inquiry_is_announced_at_least_once(database: str, vhost: str) -> None:
    async with Installation(database, vhost) as house:
        with plain_pika(vhost) as channel:
            await house.executor()  # which declares the exchange
            mine = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(mine, "penstock.status", "inquiry.*")
            await house.apply(deploy)
            await house.worker(deploy)
            ids = await house.client.start_many("ops.deploy", [{}] * 3)
            await house.until("select 1 from execution where status = 'waiting' having count(*) = 3")
            await house.client.answer(ids[0], True, by="ada")
            await house.until("select 1 where not exists (select from outbox)")
            announced: set[tuple[str, UUID]] = set()
            expected = {("inquiry.created", id) for id in ids} | {("inquiry.responded", ids[0])}
            while announced != expected:  # an announcement may come twice, and none of another execution
                method, properties, body = channel.basic_get(mine, auto_ack=True)
                if method is None:
                    channel.connection.sleep(0.05)
                    continue
                announced |= {(properties.type or "", id) for id in envelope.decode(body).ids}
                assert announced <= expected
        assert not await house.rows("select 1 from dead_letter")


async def test_an_inquiry_needs_no_listener(house: Installation) -> None:
    await house.start(deploy)
    id = await house.client.start("ops.deploy")
    await house.until(WAITING, id)
    await house.until("select 1 where not exists (select from outbox)")
    await house.client.answer(id, True, by="ada")
