"""The history of a durable function names each of its waits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock import DurableContext, Trigger, action, later
from tests.flows.installation import Installation

paid = Trigger("waits.paid")
FAILURES: list[int] = []


@action(pack="waits")
async def scan() -> Any:
    return later("the scanner")


def fail_once() -> int:
    FAILURES.append(1)
    if len(FAILURES) == 1:
        raise ConnectionError("away")
    return len(FAILURES)


@action(pack="waits")
async def all_waits(ctx: DurableContext) -> None:
    await ctx.ask("Really?", name="really")
    await ctx.sleep(1)
    await ctx.signal("go")
    await ctx.wait_for("waits.paid", name="payment")
    await ctx.run(scan, {}, name="scan")
    await ctx.step("charge", fail_once, retry={"max_attempts": 2, "initial_delay": 1})
    await ctx.first(answer=ctx.ask("Now?", name="now"), signal=ctx.signal("stop"), time=ctx.sleep(500))


WAITS = [
    "an answer (step 'really')",
    "a timer (step 'sleep')",
    "the signal go",
    "an event (step 'payment')",
    "the end of step 'scan'",
    "attempt 2 of step 'charge'",
    "a timer (step 'sleep:2') or an answer (step 'now') or the signal stop",
]


async def test_history_names_each_wait_of_a_durable_function(house: Installation) -> None:
    FAILURES.clear()
    await house.start(paid, scan, all_waits, suspend_after=0.0)
    id = await house.client.start("waits.all_waits")

    async def parked(times: int) -> None:
        await house.until(
            "select from history where execution_id = $1 and new = 'waiting' having count(*) = $2", id, times
        )

    async def open_child() -> UUID:
        [row] = await house.rows("select id from execution where parent = $1 and status = 'waiting'", id)
        child: UUID = row["id"]
        return child

    await parked(1)
    await house.client.answer(await open_child(), True, by="ada")
    await parked(3)
    await house.client.signal(id, "go", 1)
    await parked(4)
    await house.until("select from execution where parent = $1 and status = 'waiting'", id)
    await house.client.publish("waits.paid", {})
    await parked(5)
    await house.until("select from execution where parent = $1 and status = 'waiting'", id)
    await house.client.complete(await open_child(), result=7, by="ada")
    await parked(7)
    moves = await house.client.history(id)
    assert [move.reason for move in moves if move.new == "waiting"] == [
        f"waits, without a worker, for {wait}" for wait in WAITS
    ]
    continued = [move.reason for move in moves if move.new == "requested" and move.old == "waiting"]
    assert continued.count("it continues: a step that it waited for has ended") == 3
    assert not any("child" in (move.reason or "") for move in moves)
    await house.client.cancel(id)
