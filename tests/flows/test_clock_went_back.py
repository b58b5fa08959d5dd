"""The clock of the database goes back by an hour, so that instants which were written before are to come. The services, each in
its own role, go on with what does not stand under a time of its own."""

from __future__ import annotations

import pytest

from penstock import DurableContext, Limit, Trigger, action
from penstock.client import dead_letters
from penstock.store.outbox.dead_letters import LetterFilter
from tests.flows.installation import AS_USED, Installation

pytestmark = pytest.mark.either_transport

DOWN: set[str] = set()
arrived = Trigger("mill.arrived", schema={"n": "integer"})


@action(pack="mill", limits=[Limit(rate="2/30s")])
async def sift(n: int) -> int:
    return n


@action(
    pack="mill",
    breaker={"failures": 2, "of": 4, "within": "1m", "probe": "3s"},
    retry={"max_attempts": 9, "initial_delay": 0.01, "jitter": 0},
)
async def grind() -> None:
    if DOWN:
        raise ConnectionError("the mill stands still")


@action(pack="mill")
async def weigh(n: int) -> int:
    return n


@action(pack="mill")
async def expect(ctx: DurableContext) -> int:
    event = await ctx.wait_for(arrived)
    n: int = event["payload"]["n"]
    return n


AHEAD = {
    "admission": ("admitted_at", "since"),
    "breaker": ("opened_at", "probe_at", "releasing_since"),
    "breaker_attempt": ("ended_at",),
    "cluster": ("seen_at",),
    "dead_letter": ("last_at",),
    "event_wait": ("since",),
    "hold": ("releasing_since",),
    "outbox": ("due_at",),
    "slot": ("admitted_at",),
    "wake": ("at",),
}
"""The instants that were written before, by table."""


async def go_back(house: Installation) -> None:
    """Move what was written before ahead by an hour, which is what a clock that goes back does to it. An executor has noted
    the clock before."""
    await house.until("select from cluster where isfinite(seen_at)")
    async with house.session.transaction() as tx:
        for table, columns in AHEAD.items():
            moves = ", ".join(f"{column} = {column} + interval '1 hour'" for column in columns)
            await tx.fetch(f"update {table} set {moves} returning 1")


async def test_rate_goes_on_without_another_start(house: Installation) -> None:
    await house.start(sift)
    ids = [await house.client.start(sift, {"n": n}) for n in range(3)]
    await house.until("select 1 from execution where status = 'completed' having count(*) = 2")
    await house.until("select 1 from wake where at > clock_timestamp() + interval '3 s'")
    await go_back(house)
    assert [await house.client.result(id, timeout=45) for id in ids] == [0, 1, 2]
    await house.quiet()
    await house.sound()


async def test_breaker_probes_and_closes(house: Installation) -> None:
    await house.start(grind, **AS_USED)
    DOWN.add("mill")
    ids = [await house.client.start(grind) for _ in range(3)]
    await house.until("select from breaker where probes > 0")
    await go_back(house)
    DOWN.clear()
    for id in ids:
        await house.client.result(id, timeout=30)
    await house.until("select 1 where not exists (select from breaker)")
    await house.quiet()
    await house.sound()


async def test_hold_is_released_at_its_rate(house: Installation) -> None:
    await house.start(weigh)
    await house.client.holds.hold("action", "mill.weigh", by="ada")
    ids = [await house.client.start(weigh, {"n": n}) for n in range(3)]
    await house.until("select from held_execution having count(*) = 3")
    await house.client.holds.release("action", "mill.weigh", rate="1/2s")
    await house.until("select 1 from execution where status = 'completed'")
    await go_back(house)
    assert [await house.client.result(id, timeout=45) for id in ids] == [0, 1, 2]
    await house.quiet()
    await house.sound()


async def test_function_sees_an_event_that_comes_after_its_wait(house: Installation) -> None:
    await house.start(arrived, expect)
    id = await house.client.start(expect)
    await house.until("select from event_wait")
    await go_back(house)
    await house.client.publish("mill.arrived", {"n": 7})
    assert await house.client.result(id, timeout=20) == 7
    await house.quiet()
    await house.sound()


async def test_dead_letter_is_replayed(house: Installation) -> None:
    await house.start(arrived, weigh)
    await house.rows(
        "insert into dead_letter (id, queue, reason, body, headers, fingerprint) values"
        " (gen_random_uuid(), 'event.received', 'unknown trigger', '{\"n\": 1}',"
        " '{\"x-penstock-trigger\": \"mill.arrived\"}', 'one') returning 1"
    )
    await go_back(house)
    [outcome] = [outcome async for outcome in dead_letters.replay(house.client, LetterFilter())]
    assert outcome.error is None
    assert not await house.rows("select from dead_letter")


async def test_messages_of_the_outbox_are_delivered(house: Installation) -> None:
    """No executor has published or taken them yet."""
    await house.apply(weigh)
    await house.rows("update cluster set seen_at = clock_timestamp() returning 1")
    id = await house.client.start(weigh, {"n": 7})
    await go_back(house)
    await house.executor()
    await house.worker(weigh)
    await house.until("select 1 from execution where status = 'completed'", seconds=45)
    assert await house.client.result(id) == 7
    await house.quiet()
    await house.sound()
