"""Events that actions publish, and executions that they start, through their worker's connections."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from penstock.errors import ExecutionFailed
from penstock.operate import event_rules, secrets
from penstock.operate.executions import described
from penstock.operate.why import why
from tests.crash.test_unknown_commits import lost_after
from tests.flows import inside
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

pytestmark = pytest.mark.either_transport

EVENTS = "select (payload ->> 'n')::integer as n, tenant, source from event order by created_at, id"
DOUBLES = """
select e.id, (p.params ->> 'n')::integer as n, p.origin ->> 'started_by' as starter, n.name as namespace, e.status
from execution e join payload p on p.execution_id = e.id join namespace n on n.id = e.namespace_id
join definition d on d.id = e.definition_id where d.ref = 'inside.double' order by e.id
"""


async def numbers(house: Installation, sql: str) -> list[int]:
    return [row["n"] for row in await house.rows(sql)]


async def test_events_and_starts_belong_to_the_execution_and_its_tenant(house: Installation) -> None:
    await house.start(*inside.ALL)
    publisher = await house.client.start("inside.publishes", {"n": 7}, tenant="acme")
    event = await house.client.result(publisher, timeout=20)
    starter = await house.client.start("inside.starts", {"n": 3}, tenant="acme")
    child = await house.client.result(starter, timeout=20)
    assert await house.client.result(UUID(child), timeout=20) == 6
    assert [tuple(row) for row in await house.rows(EVENTS)] == [(7, "acme", "action")]
    assert [tuple(row)[2:4] for row in await house.rows(DOUBLES)] == [(str(starter), "acme::inside::double")]
    shown = await described(house.session, starter)
    assert shown is not None
    assert [(e["kind"], str(e["id"]), e["name"]) for e in shown["effects"]] == [
        ("execution", child, "inside.double")
    ]
    shown = await described(house.session, publisher)
    assert shown is not None
    assert [(e["kind"], str(e["id"]), e["name"]) for e in shown["effects"]] == [
        ("event", event, "inside.paid")
    ]
    document = await event_rules.described(house.session, UUID(event))
    assert document is not None
    assert document["published_by"] == publisher
    outside = await house.client.publish("inside.paid", {"n": 8}, tenant="acme")
    document = await event_rules.described(house.session, outside)
    assert document is not None
    assert document["published_by"] is None
    await house.sound()


async def test_all_executors_of_python_code_run_and_publish(house: Installation) -> None:
    await house.start(*inside.ALL)
    for ref in ("starts_by_reference", "runs", "runs_in_thread", "awaits_in_thread"):
        result = await house.client.run(f"inside.{ref}", {"n": 5}, timeout=30)
        assert result == {"runs": 20, "runs_in_thread": 10, "awaits_in_thread": 10}.get(ref, result)
    assert await house.client.run("inside.runs_in_process", {"n": 5}, timeout=30) == 80
    assert await house.client.run("inside.awaits_in_process", {"n": 5}, timeout=30) == 30
    assert await house.client.run("inside.wrong_in_process", timeout=30) == ["NotFound", "InvalidInput"]
    assert await numbers(house, EVENTS) == [5, 5]
    await house.quiet()
    await house.sound()


async def failure_of(house: Installation, action: str, **parameters: Any) -> str:
    """Return the sentence about the failure of an execution, with ID instead of ids."""
    id = await house.client.start(action, parameters)
    with suppress(ExecutionFailed):
        await house.client.result(id, timeout=20)
    shown = await described(house.session, id)
    assert shown is not None
    return re.sub(r"[0-9a-f-]{36}", "ID", shown["failure"])


@pytest.mark.parametrize("ref", ["inside.awaits_child", "inside.awaits_child_in_process"])
async def test_error_of_a_child_names_its_action(house: Installation, ref: str) -> None:
    await house.start(*inside.ALL)
    failure = await failure_of(house, ref, ref="inside.breaks")
    assert failure == "inside.breaks (ID) failed: RuntimeError: no paper"
    failure = await failure_of(house, ref, ref="inside.never")
    assert re.sub("queued|scheduled", "OPEN", failure) == (
        "TimeoutError: inside.never (ID) did not end within 0.5 s: it is OPEN. `penstock why ID` tells what it waits for"
    )


async def test_error_of_an_inner_child_has_all_names(house: Installation) -> None:
    await house.start(*inside.ALL)
    failure = await failure_of(house, "inside.awaits_child", ref="inside.breaks", levels=2)
    assert failure == ("inside.awaits_child (ID) failed: inside.breaks (ID) failed: RuntimeError: no paper")


async def test_why_names_a_child_without_a_slot(house: Installation) -> None:
    await house.start(*inside.ALL, concurrency=1)
    parent = await house.client.start("inside.runs_slowly", {"n": 2})
    [child] = [row["id"] for row in await house.until("select id from effect where parent = $1", parent)]
    await house.until("select from awaited where execution_id = $1", child)
    await house.until("select from execution where id = $1 and status = 'scheduled'", child)
    await house.until("select from process where cardinality(holding) = 1")
    waits = "waits for a free slot of 1 worker that can run it"
    answer = await why(house.session, parent, house.settings())
    assert f"It waits for its child {child} (inside.double), which {waits}" in answer.says
    assert "This attempt holds one of these slots. If all slots are held in this way" in answer.says
    assert answer.facts["awaited_child"] == child
    answer = await why(house.session, child, house.settings())
    assert f"{parent} (inside.runs_slowly) waits for it, and holds one of these slots." in answer.says
    assert answer.facts["awaited_by"] == parent
    await house.client.cancel(parent)
    assert await house.client.result(child, timeout=20) == 4


async def test_why_names_no_child_that_is_not_awaited(house: Installation) -> None:
    await house.start(*inside.ALL, concurrency=1)
    parent = await house.client.start("inside.starts_and_holds", {"n": 2})
    [child] = [row["id"] for row in await house.until("select id from effect where parent = $1", parent)]
    await house.until("select from execution where id = $1 and status = 'scheduled'", child)
    await house.until("select from process where cardinality(holding) = 1")
    assert str(child) not in (await why(house.session, parent, house.settings())).says
    assert str(parent) not in (await why(house.session, child, house.settings())).says
    await house.client.cancel(parent)


async def test_a_child_process_is_replaced_if_a_thread_still_waits(house: Installation) -> None:
    await house.start(*inside.ALL)
    await house.client.run("inside.leaves_a_thread", timeout=30)
    for _ in range(3):
        assert await house.client.run("inside.awaits_in_process", {"n": 1}, timeout=30) == 6


async def test_blocking_call_on_the_loop_is_refused(house: Installation) -> None:
    await house.start(*inside.ALL)
    with pytest.raises(ExecutionFailed, match="a blocking call would stop the worker's event loop"):
        await house.client.run("inside.blocks_the_loop", timeout=20)


async def test_a_key_starts_and_publishes_once(house: Installation) -> None:
    await house.start(*inside.ALL)
    first = await house.client.run("inside.starts", {"n": 1, "key": "one"}, timeout=20)
    assert await house.client.run("inside.starts", {"n": 1, "key": "one"}, timeout=20) == first
    assert str(await house.client.start("inside.double", {"n": 1}, key="one")) == first
    event = await house.client.run("inside.publishes", {"n": 1, "key": "one"}, timeout=20)
    assert await house.client.run("inside.publishes", {"n": 1, "key": "one"}, timeout=20) == event
    assert await house.client.run("inside.conflicts", timeout=20) == "Conflict"
    assert await numbers(house, EVENTS) == [1]


async def test_transactional_requests_commit_with_the_completion_alone(house: Installation) -> None:
    await house.start(*inside.ALL)
    assert await house.client.run("inside.fails_twice", {"n": 1}, timeout=20) == 3
    with pytest.raises(ExecutionFailed, match="after it published"):
        await house.client.run("inside.fails", {"n": 2}, timeout=20)
    await house.client.run("inside.defers", {"n": 3}, timeout=20)
    assert await numbers(house, EVENTS) == [1, 3]
    assert sorted(await numbers(house, DOUBLES)) == [1, 101]
    await house.quiet()
    await house.sound()


async def test_transactional_requests_of_a_question(house: Installation) -> None:
    """Asking for its result, an execution keeps them; one that runs again from its start requests them again."""
    await house.start(*inside.ALL)
    asking = await house.client.start("inside.asks", {"n": 1})
    resuming = await house.client.start("inside.asks", {"n": 2, "resume": True})
    await house.until("select 1 from inquiry where status = 'created' having count(*) = 2")
    assert await numbers(house, EVENTS) == [1]
    for id in (asking, resuming):
        await house.client.answer(id, True, by="test")
    assert await house.client.result(resuming, timeout=20) is True
    assert await numbers(house, EVENTS) == [1, 2]


async def test_cancelled_attempt_publishes_nothing(house: Installation) -> None:
    await house.start(*inside.ALL)
    id = await house.client.start("inside.waits_to_be_cancelled", {"n": 1})
    await house.until("select 1 from execution where status = 'running'")
    await house.client.cancel(id)
    await house.until("select 1 from execution where status = 'cancelled'")
    assert await numbers(house, EVENTS) == []


async def test_refused_transactional_start_fails_the_attempt(house: Installation) -> None:
    await house.start(*inside.ALL)
    with pytest.raises(ExecutionFailed, match="Conflict: this idempotency key belongs to execution"):
        await house.client.run("inside.conflicts_at_its_end", timeout=20)
    assert await house.client.run("inside.publishes", {"n": 1, "transactional": True}, timeout=20) == "kept"
    assert await numbers(house, EVENTS) == [1]


async def test_durable_function_publishes_in_steps(house: Installation) -> None:
    await house.start(*inside.ALL)
    at_the_end, in_the_body = await house.client.run("inside.durable_function", timeout=20)
    assert "cannot use transactional requests" in at_the_end
    assert "is replayed" in in_the_body
    assert await numbers(house, EVENTS) == [1]


AWAITING = "select 1 from suspended s where s.execution_id = '{}' and s.signals::text like '%paid%'"


async def test_actions_signal_from_all_executors(house: Installation) -> None:
    await house.start(*inside.ALL)
    for ref, answer in (
        ("signals", [True, ["paid"]]),
        ("signals_in_thread", True),
        ("signals_in_process", True),
    ):
        receiver = await house.client.start("inside.receives", tenant="acme")
        await house.until(AWAITING.format(receiver))
        sender = await house.client.start(
            f"inside.{ref}", {"run": str(receiver), "value": ref}, tenant="acme"
        )
        assert await house.client.result(sender, timeout=30) == answer
        assert await house.client.result(receiver, timeout=20) == ref
    await house.quiet()
    await house.sound()


async def test_refused_signals_raise_the_errors_of_the_client(house: Installation) -> None:
    await house.start(*inside.ALL)
    receiver = await house.client.start("inside.receives", tenant="acme")
    double = await house.client.start("inside.double", {"n": 1})
    errors = [
        await house.client.run("inside.signals_wrongly", {"run": str(run), "name": name}, timeout=20)
        for run, name in ((receiver, "paid"), (double, "paid"), (double, "a/b"))
    ]
    assert errors == ["NotFound", "Conflict", "DefinitionError"]


async def test_transactional_signal_comes_with_the_completion(house: Installation) -> None:
    await house.start(*inside.ALL)
    receiver = await house.client.start("inside.receives")
    message = {"run": str(receiver), "transactional": True}
    with pytest.raises(ExecutionFailed, match="after it signalled"):
        await house.client.run("inside.signals", {**message, "value": 1, "fails": True}, timeout=20)
    assert await house.client.run("inside.signals", {**message, "value": 2}, timeout=20) == "kept"
    assert await house.client.result(receiver, timeout=20) == 2
    with pytest.raises(ExecutionFailed, match=r"Conflict: .* has ended"):
        await house.client.run("inside.signals", {**message, "value": 3}, timeout=20)
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("moment", ["committing", "committed"])
@pytest.mark.parametrize(("function", "transactional"), [("finish", True), ("committed_once", False)])
async def test_lost_answer_of_a_commit_signals_once(
    house: Installation, function: str, moment: str, transactional: bool
) -> None:
    await house.start(*inside.ALL)
    receiver = await house.client.start("inside.receives")
    await house.until(AWAITING.format(receiver))
    with lost_after(function, moment) as sites:
        message = {"run": str(receiver), "value": 1, "transactional": transactional}
        await house.client.run("inside.signals", message, timeout=20)
    assert sites
    assert await house.client.result(receiver, timeout=20) == 1
    assert len(await house.rows("select 1 from step where name = 'signal/paid'")) == 1


@pytest.mark.parametrize("moment", ["committing", "committed"])
@pytest.mark.parametrize("function", ["finish", "EffectWriter._write"])
async def test_lost_answer_of_a_commit_doubles_nothing(
    house: Installation, function: str, moment: str
) -> None:
    await house.start(*inside.ALL)
    with lost_after(function, moment) as sites:
        if function == "finish":
            await house.client.run("inside.publishes", {"n": 1, "transactional": True}, timeout=20)
        else:
            await house.client.run("inside.publishes", {"n": 1}, timeout=20)
    assert sites
    assert await numbers(house, EVENTS) == [1]
    await house.sound()


async def test_replaced_definition_is_looked_up_again(house: Installation) -> None:
    await house.start(*inside.ALL)
    for key in (None, "k"):
        await house.client.run("inside.starts", {"n": 1, "key": key}, timeout=20)
        await house.client.run("inside.fails_twice", {"n": 1 if key else 2}, timeout=20)
        await house.rows(
            "with copy as (insert into definition (kind, ref, digest, body) select kind, ref, 'copy', body from definition "
            "where ref = 'inside.double' on conflict do nothing returning id) "
            "update catalog set definition_id = copy.id from copy where ref = 'inside.double'"
        )
    await house.quiet()
    [versions] = await house.rows(
        "select count(distinct definition_id) as n from execution where definition_id in "
        "(select id from definition where ref = 'inside.double')"
    )
    assert versions["n"] == 2


async def test_secrets_are_passed_by_reference_and_masked_in_events(make_house: Any) -> None:
    async with make_house(secrets_key=KEY) as house:
        await house.start(*inside.ALL, secrets_key=KEY)
        await secrets.put(house.session, "public", "inside", "hunter2-hunter2", by="test")
        id = await house.client.start("inside.passes_secret", secrets={"password": "inside"})
        child = UUID(await house.client.result(id, timeout=20))
        assert await house.client.result(child, timeout=20) == len("hunter2-hunter2")
        stored = await house.rows(
            "select payload::text as text from event union all select params::text from payload"
        )
        assert not any("hunter2" in row["text"] for row in stored)


async def test_worker_needs_no_more_connections(house: Installation) -> None:
    await house.apply(*inside.ALL)
    await house.executor()
    await house.worker(*inside.ALL, concurrency=100, database_connections=2)
    names = "select count(*) as n from pg_stat_activity where application_name like 'worker:%'"
    await house.client.start_many("inside.publishes_and_starts", [{"n": 5 * n} for n in range(100)])
    most = 0
    while await house.rows("select 1 from execution where finished_at is null limit 1"):
        [row] = await house.rows(names)
        most = max(most, row["n"])
    assert 0 < most <= house.settings(database_connections=2).most_connections
