"""The scenarios that are killed at each of their points: deeds that may be repeated, and their expected outcome."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pika

from penstock.errors import Conflict
from penstock.messaging.transports import Message
from penstock.store.events import polls
from penstock.store.outbox import queues
from tests.crash.points import operating, works
from tests.crash.points.world import World, again

Drive = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    name: str
    drive: Drive
    """Does everything under keys, so that who was killed may do it all again."""
    expect: Drive
    definitions: tuple[Any, ...] = works.ALL
    settings: dict[str, Any] = field(default_factory=dict)
    before: str = "select"
    """SQL, run once what is defined has been applied."""
    only: str = ""
    """It is killed at those of its points that say this; the others are those of other scenarios."""


async def event(world: World) -> None:
    for n in (1, 2):
        await again(lambda n=n: world.client.publish("pt.placed", {"id": n}, key=f"event-{n}"))  # type: ignore[misc]
    if world.broker:
        await asyncio.to_thread(_from_outside, world.broker)
    await world.start("pt.followed", "followed", {"order": 9})
    await world.until(
        "select 1 from execution where finished_at is not null having count(*) >= $1",
        5 if world.broker else 4,
    )


def _from_outside(broker: str) -> None:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(broker))) as connection:
        connection.channel().basic_publish(
            "penstock.events",
            "pt.placed",
            json.dumps({"id": 3}).encode(),
            pika.BasicProperties(message_id="outside-3"),
        )


async def event_came_once(world: World) -> None:
    expected = ["1", "2", "3"] if world.broker else ["1", "2"]
    assert await world.results("pt.charge") == expected
    assert await world.results("pt.told") == ["completed"]
    assert await world.value("select count(*) from event") == len(expected), "an event is stored twice"
    assert await world.value("select count(*) from enforcement where status = 'executed'") == len(expected)


async def durable(world: World) -> None:
    id = await world.start("pt.saga", "saga", {"n": 5})
    with contextlib.suppress(Conflict):  # it has ended, with what it was told before
        await again(lambda: world.client.signal(id, "word", "go"))
    await world.ended(id)


async def what_was_recorded_counts(world: World) -> None:
    [result] = [json.loads(text) for text in await world.results("pt.saga")]
    assert result[1:4] == [5, [1, 2], "go"]
    steps = await world.rows(
        "select name, result #>> '{}' as made from step where kind = 'step' order by name"
    )
    assert [row["made"] for row in steps] == [result[0], result[4]]


async def assigned(world: World) -> None:
    """Start without keys, and so again after a kill. The worker has one slot: a message takes it from its permit."""
    for n in (1, 2):
        await world.until("select 1 from permit")
        await again(lambda n=n: world.client.start("pt.charge", {"order": n}))  # type: ignore[misc]
    await world.start("pt.charge", "by message", {"order": 3})
    await world.until(
        "select 1 where not exists (select from execution where finished_at is null) "
        "and not exists (select from claim)"
    )


async def each_start_ran(world: World) -> None:
    assert set(await world.results("pt.charge")) == {"1", "2", "3"}
    assert await world.value("select count(*) from execution where status <> 'completed'") == 0
    assert await world.value("select count(*) from history where new = 'completed'") == await world.value(
        "select count(*) from execution"
    )


async def admission(world: World) -> None:
    ids = [await world.start("pt.one_at_a_time", f"n-{n}", {"n": n}) for n in range(4)]
    await world.ended(*ids)


async def all_were_admitted(world: World) -> None:
    assert await world.results("pt.one_at_a_time") == ["0", "1", "2", "3"]
    assert await world.value("select count(*) from admission where held > allowed") == 0


async def workflow(world: World) -> None:
    await world.ended(await world.start("pt.flow", "flow", {"numbers": [1, 2, 3]}))


async def workflow_is_right(world: World) -> None:
    [output] = await world.results("pt.flow")
    assert json.loads(output) == {"sum": 6, "why": "as it should"}
    children = await world.rows(
        "select task, item, status from execution where parent is not null order by 1, 2"
    )
    assert [tuple(row) for row in children] == [
        ("broken", -1, "failed"),
        *(("each", item, "completed") for item in range(3)),
        ("last", -1, "completed"),
        ("mend", -1, "completed"),
    ]


async def begun(world: World) -> None:
    """Start without keys, and so again after a kill. The fifth workflow of a process begins in its submit."""
    for n in range(1, 6):
        await again(lambda n=n: world.client.start("pt.two_steps", {"n": n}))  # type: ignore[misc]
        await world.client._submits.settle()
    await world.until(
        "select 1 where not exists (select from execution where finished_at is null) "
        "and not exists (select from claim)"
    )


async def each_workflow_ran(world: World) -> None:
    assert set(await world.results("pt.charge")) == {str(n) for n in (*range(1, 6), *range(11, 16))}
    assert await world.value("select count(*) from execution where status <> 'completed'") == 0
    assert await world.value(
        "select count(*) from execution where parent is not null"
    ) == 2 * await world.value("select count(*) from execution where parent is null")
    if world.first:
        assert await world.value(
            "select count(*) from history h join execution e on e.id = h.execution_id "
            "where e.task = 'one' and h.old is null and h.actor like 'client:%'"
        )


async def inquiry(world: World) -> None:
    id = await world.start("pt.ask", "ask")
    await world.reached(id, "waiting")
    with contextlib.suppress(Conflict):
        await again(lambda: world.client.answer(id, True, by="ada"))
    await world.ended(id)


async def it_was_answered_once(world: World) -> None:
    assert await world.results("pt.ask") == ["true"]
    assert await world.value("select count(*) from inquiry where status = 'responded'") == 1


async def cron(world: World) -> None:
    await world.until("select 1 from fire where status = 'created'")
    await again(lambda: world.client.schedules.disable("pt.ticking"))
    if world.first:
        for _ in range(2):
            await again(lambda: world.client.schedules.run("pt.twice"))
        await world.until("select 1 where not exists (select from waiting_fire)")
    await world.until("select 1 where not exists (select from open_fire)")


async def every_fire_ran_once(world: World) -> None:
    fires = await world.rows(
        "select schedule, due_at, execution_id, outcome from fire where status = 'created'"
    )
    assert fires
    assert all(row["outcome"] in ("completed", "cancelled") for row in fires), fires
    ids = [row["execution_id"] for row in fires]
    assert sorted(ids) == [row[0] for row in await world.rows("select id from execution order by id")]
    assert await world.value("select count(*) from fire where due_at > made_at") == 0


async def cancel(world: World) -> None:
    ids = [
        await world.start("pt.charge", "requested", {"order": 1}, delay=600),
        await world.start("pt.held", "holds"),
        await world.start("pt.held", "queued"),
        await world.start("pt.unserved", "scheduled"),
        await world.start("pt.nap", "running"),
        await world.start("pt.ask", "waiting"),
        await world.start("pt.napping", "workflow"),
        await world.start("pt.nap", "overdue", options={"timeouts": {"total": 0.3}}),
    ]
    either = (
        "running",
        "queued",
    )  # while an execution that lost its worker is requested again, the other one may be admitted
    for id, statuses in zip(
        ids,
        (["requested"], either, either, ["scheduled"], ["running"], ["waiting"], ["running"], ["canceling"]),
        strict=True,
    ):
        await world.reached(id, *statuses)
    await world.until(
        "select 1 from execution where task = 'nap' and (status = 'running' or finished_at is not null)"
    )
    await again(lambda: world.client.cancel(*ids[:-1]))
    await world.ended(*ids)


async def all_are_cancelled(world: World) -> None:
    rows = await world.rows("select status, count(*) from execution group by 1 order by 1")
    assert [tuple(row) for row in rows] == [("cancelled", 8), ("timeout", 1)], rows


async def drain(world: World) -> None:
    ids = [await world.start("pt.nap", f"nap-{n}", {"seconds": 0.1 + n / 2}) for n in range(3)]
    ids += [await world.start("pt.charge", f"charge-{n}", {"order": n}) for n in range(5)]
    if world.first:
        await world.until("select 1 from execution where status = 'running' having count(*) >= 1")
        world.stop.ask()
        await asyncio.wait(world.services)
    else:
        await world.ended(*ids)


async def all_is_done(world: World) -> None:
    assert await world.results("pt.charge") == ["0", "1", "2", "3", "4"]
    assert await world.results("pt.nap") == ["rested"] * 3
    assert await world.value("select max(recoveries) from execution where status <> 'completed'") is None


POISONED = """
update definition set body = body - 'tasks' where ref = 'pt.napping';
alter table fire add constraint odd check (schedule <> 'pt.odd');
alter table event add constraint odd check (trigger <> 'pt.odd_letters');
update schedule set since = since - interval '2 hours', next_due = clock_timestamp() where ref = 'pt.odd'
"""


async def poison(world: World) -> None:
    """Store unreadable messages, a workflow that cannot run, and a schedule and a poll that the database refuses."""
    for queue in (queues.EXECUTION_REQUESTED, "work.default"):
        garbage = Message(queue=queue, body=b"garbage", id=f"garbage-{queue}", type="?")
        while not (await again(lambda garbage=garbage: world.parts.transport.publish([garbage])))[0]:  # type: ignore[misc]
            await asyncio.sleep(0.05)
    await world.start("pt.napping", "poison")
    await world.until("select 1 from dead_letter having count(*) >= 3")
    await world.until("select 1 from schedule where ref = 'pt.odd' and error is not null")
    await world.until("select 1 from poll where error is not null")
    await again(lambda: polls.enable(world.session, "pt.odd_letters", False))
    await world.until("select 1 from poll where running is null")
    await world.rows(
        "select * from end_executions(array(select id from execution), '{running}', 'failed', 'x', null)"
    )


async def it_is_kept_with_its_reason(world: World) -> None:
    rows = await world.rows("select queue, reason from dead_letter where octet_length(body) > 0")
    assert {row["queue"] for row in rows} >= {"execution.requested", "work.default", "workflow.started"}, rows
    assert all(row["reason"] for row in rows)


async def polling(world: World) -> None:
    await world.until("select 1 from event having count(*) >= 2")
    await again(lambda: polls.enable(world.session, "pt.letters", False))
    await world.until("select 1 from poll where running is null")
    await again(lambda: polls.forget(world.session, "pt.letters"))


async def every_letter_came_once(world: World) -> None:
    assert await world.results("pt.sort") == ["1", "2"]
    assert await world.value("select count(*) from event") == 2


async def edits(world: World) -> None:
    for n in (1, 2, 3):
        await again(lambda n=n: world.client.publish("pt.edited", {"n": n}, key=f"edit-{n}"))  # type: ignore[misc]
    await world.until("select 1 from burst having sum(events) >= 3")
    await world.until(
        "select 1 from execution where finished_at is not null having count(*) >= (select count(*) from burst)"
    )


async def each_burst_ran_once(world: World) -> None:
    kept = await world.rows(
        "select v.payload ->> 'n' as n from burst b join event v on v.id = b.event_id order by v.payload ->> 'n'"
    )
    assert await world.results("pt.charge") == [row["n"] for row in kept]
    assert kept[-1]["n"] == "3"
    assert await world.value("select count(distinct event_id) from burst_event where burst is not null") == 3
    assert await world.value("select count(*) from burst_event") == 3


async def pairs(world: World) -> None:
    for n in (1, 2, 3, 4):
        await again(lambda n=n: world.client.publish("pt.edited", {"n": n}, key=f"pair-{n}"))  # type: ignore[misc]
    await world.until("select 1 from execution where finished_at is not null having count(*) >= 2")


async def each_pair_ran_once(world: World) -> None:
    assert await world.results("pt.charge") == ["3", "7"]
    assert await world.value("select count(*) from burst_event where part = 0 and burst is not null") == 4


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("event", event, event_came_once),
        Scenario("pooler", event, event_came_once, settings={"database_pooler": True}),
        Scenario("assigned", assigned, each_start_ran, settings={"concurrency": 1}),
        Scenario("admission", admission, all_were_admitted),
        Scenario("workflow", workflow, workflow_is_right),
        Scenario("begun", begun, each_workflow_ran, (works.charge, works.two_steps)),
        Scenario("inquiry", inquiry, it_was_answered_once),
        Scenario("cron", cron, every_fire_ran_once, definitions=(*works.ALL, works.ticking)),
        Scenario("bursts", edits, each_burst_ran_once, (works.charge, works.edited, works.on_edited)),
        Scenario("windows", pairs, each_pair_ran_once, (works.charge, works.edited, works.on_pairs)),
        Scenario("polls", polling, every_letter_came_once, (works.sort, works.letters, works.on_letter)),
        Scenario(
            "durable",
            durable,
            what_was_recorded_counts,
            (works.saga, works.sort),
            settings={"suspend_after": 0.02},
            only="@ coalesce",
        ),
        Scenario("cancel", cancel, all_are_cancelled),
        Scenario("drain", drain, all_is_done),
        Scenario(
            "poison",
            poison,
            it_is_kept_with_its_reason,
            (*works.ALL, works.odd, works.odd_letters),
            before=POISONED,
        ),
        Scenario("operator", operating.operator, operating.the_last_word_counts),
        Scenario(
            "operator behind a pooler",
            operating.operator,
            operating.the_last_word_counts,
            settings={"database_pooler": True},
            only="Limits._fill",
        ),
        Scenario("commands", operating.commands, operating.each_was_obeyed, only=f"@ {operating.COMMANDS}"),
        Scenario(
            "upkeep",
            operating.upkeep,
            operating.nothing_was_lost,
            settings={"archive_after": 0.2},
            before=operating.OLD,
        ),
        Scenario(
            "upkeep behind a pooler",
            operating.upkeep,
            operating.nothing_was_lost,
            settings={"archive_after": 0.2, "database_pooler": True},
            before=operating.OLD,
            only="recover_messages.py:_restage_noted",
        ),
        Scenario("left behind", operating.left_behind, operating.it_went_out_or_was_kept, only="relay"),
    )
}
