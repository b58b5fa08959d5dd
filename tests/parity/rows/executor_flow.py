"""A1 to A4 and A6: claims, limits, and the process that advances a workflow."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from uuid import UUID

from tests.parity.host import Host
from tests.parity.site import Site


async def a01_claim_has_one_winner(host: Host) -> str:
    """Compare-and-swap claim out of `requested` before any side effect, one winner, replica identity recorded."""
    site = await host.shared()
    messages = [f"a01-{n}" for n in range(60)]
    await site.amqp.events("flow.ticked", [{"n": 2 * n} for n in range(60)], messages, app_id="a01")
    ids = await site.until(partial(site.executions_of, "a01", 60), "60 executions of 60 events")
    await site.amqp.envelopes("execution.requested", ids, queue="execution.requested", copies=5)
    assert Counter(await site.ends(*ids)) == {"completed": 60}
    await site.until(partial(site.amqp.empty, "execution.requested"), "the copies to be acknowledged")
    winners: Counter[str] = Counter()
    for id in ids:
        moves = await site.client.history(id)
        scheduled = [move for move in moves if move.new == "scheduled"]
        assert len(scheduled) == 1, f"{id} was scheduled {len(scheduled)} times"
        assert scheduled[0].actor, f"nobody knows who scheduled {id}"
        winners[scheduled[0].actor.split("/")[0]] += 1
    between = await site.value("select count(*) from legal_move where 'scheduling' in (old, new)")
    assert between == 0, "there is a state between requested and scheduled"
    return (
        f"60 executions, five copies of each request, three executors: each scheduled once; by {_named(winners)}; "
        "claim, admission and route are one move, so nothing is left in between to reclaim"
    )


async def a02_limits(host: Host) -> str:
    """Limits per action and per parameter group, `enqueue` and `cancel` policies, FIFO across replicas, durable rows."""
    site, client = await host.shared(), (await host.shared()).client
    # Order is promised among those in line: of several that come at once to a slot that is free, any may have it.
    heads = [await client.start("flow.turn", {"lane": lane, "seconds": 2}) for lane in ("a02", "a02-rank")]
    for head in heads:
        await site.comes_to(head, "running")
    lane = [await client.start("flow.turn", {"lane": "a02", "n": n}) for n in range(10)]
    ranked = [await client.start("flow.turn", {"lane": "a02-rank", "n": n}, priority=n) for n in range(4)]
    other = await client.start("flow.turn", {"lane": "a02-other"})
    pairs = await client.start_many("flow.pair", [{"n": n} for n in range(8)])
    refused = await client.start_many("flow.refuse", [{"n": n} for n in range(3)])
    bounded = [await client.start("flow.bounded", {"n": n}) for n in range(4)]
    rated = [await client.start("flow.rated", {"n": n}) for n in range(5)]
    several = [
        await client.start("flow.twice_limited", {"customer": "x", "order": f"o{n % 2}"}) for n in range(6)
    ]
    old = await client.start("flow.replace", {"n": 0})
    await site.comes_to(old, "running")
    new = await client.start("flow.replace", {"n": 1})
    assert set(await site.ends(*heads, *lane, other, *pairs, *rated, *several, *ranked)) == {"completed"}
    await _in_order(site, lane)
    await _in_order(site, ranked[::-1])
    count = await site.value(
        "select count(*) from admission a where held > allowed and not rated and execution_id = any($1)",
        [*lane, *pairs],
    )
    assert count == 0, f"{count} were let in over their limit"
    assert Counter(await site.ends(*refused)) == {"completed": 1, "cancelled": 2}, "cancel_new did not refuse"
    assert Counter(await site.ends(*bounded)) == {"completed": 2, "cancelled": 2}, (
        "max_waiting did not refuse"
    )
    assert await site.ends(old, new) == ["cancelled", "completed"], (
        "cancel_running did not make the old one give way"
    )
    held = await site.sql("select admitted_at from admission where execution_id = any($1) order by 1", rated)
    times = [row["admitted_at"].timestamp() for row in held]
    assert all(b - a >= 2.9 for a, b in zip(times, times[2:], strict=False)), (
        f"a rate of 2/3s let in at {times}"
    )
    widened = await client.start_many("flow.widened", [{"n": n} for n in range(3)])
    await site.comes_to(widened[0], "running")
    await site.command("limit", "set", "flow.widened.all", "2")
    await site.until(lambda: _running(site, widened, 2), "a raised limit to let one more in")
    await client.limits.set("flow.widened.all", max=3)
    await site.until(lambda: _running(site, widened, 3), "a limit raised by the client to let one more in")
    await site.command("limit", "rm", "flow.widened.all")
    await client.cancel(*widened)
    return (
        "limits per action, per group and several at once; 10 in line began in order on three executors; cancel_new, "
        "cancel_running, max_waiting, 2/3s and priorities held; one raised live by command and client"
    )


async def a03_every_end_promotes(host: Host) -> str:
    """Completion on any replica releases the slot and promotes the next in the same transaction; every way of ending does."""
    site, client = await host.shared(), (await host.shared()).client
    ways = ["complete", "fail", "timeout", "cancel", "retry", "defer", "ask", "skip-queued"]
    promoted: dict[str, str] = {}

    async def one(how: str) -> None:
        lane = f"a03-{how}"
        seconds = 5.0 if how in ("timeout", "cancel") else 2.0
        action = "flow.second_time" if how == "retry" else "flow.turn"
        first = await client.start(action, {"lane": lane, "how": how, "seconds": seconds})
        await site.until(
            lambda: site.sql("select 1 from slot where execution_id = $1", first),
            "the first to have the slot",
        )
        second, third = [
            await client.start(action, {"lane": lane, "n": n, "how": "complete"}) for n in (1, 2)
        ]
        if how == "cancel":
            await site.comes_to(first, "running")
            await client.cancel(first)
        if how == "skip-queued":
            await client.cancel(second)
        assert await site.ends(third) == ["completed"]
        row, freed = await _transaction(site, first, ("running", "canceling"), ("canceling",))
        _, let_in = await _transaction(site, third if how == "skip-queued" else second, ("queued",), ())
        assert freed == let_in, f"after {how} the next one was let in by another transaction"
        promoted[how] = row

    await asyncio.gather(*(one(how) for how in ways))
    ends = ", ".join(f"{how} ({end})" for how, end in sorted(promoted.items()))
    return f"the next in line was let in by each of these ends of the one before: {ends}"


async def a04_queue_statistics(host: Host) -> str:
    """`queue_stats` as derived telemetry: read when asked, never a row that all processes write; queue position in
    `why`."""
    site, client = await host.shared(), (await host.shared()).client
    ids = [await client.start("flow.hold", {"lane": "a04"}) for _ in range(5)]
    await site.until(
        lambda: site.sql("select 1 from waiter where execution_id = any($1) having count(*) = 4", ids),
        "a line",
    )
    last = (
        await site.sql(
            "select execution_id from waiter where execution_id = any($1) order by ready_at desc", ids
        )
    )[0][0]
    answer, lines = await asyncio.gather(
        site.command("why", last), site.command("queues", "--json", "--limit", 1000)
    )
    mine = [line for line in lines.lines if line["kind"] == "line" and "a04" in str(line["group_value"])]
    assert mine, f"`penstock queues` does not show the line: {lines.out[-600:]}"
    assert mine[0]["held"] == 1, f"`penstock queues` says that {mine[0]['held']} hold a slot"
    routes = [line for line in lines.lines if line["kind"] == "route" and line["queue"].endswith("default")]
    assert routes, f"`penstock queues` does not show the route default: {lines.out[:200]}"
    assert "4th in line" in answer.out, f"`why` does not say where it stands: {answer.out}"
    assert mine[0]["waiting"] == 4, f"`penstock queues` says that {mine[0]['waiting']} wait"
    await client.cancel(*ids)
    return f"`queues`: {mine[0]['held']} holds, {mine[0]['waiting']} wait; `why`: {answer.out.strip()[:120]}"


async def a06_workflow_has_one_mutator(host: Host) -> str:
    """Workflow advance under a per-workflow lock in one transaction; children published after commit; a batch advances once."""
    site, client = await host.shared(), (await host.shared()).client
    id = await client.start("flow.fan", {"items": list(range(60))})
    done: set[UUID] = set()
    while await site.status(id) not in ("completed", "failed"):
        rows = await site.sql("select id from execution where parent = $1 and status = 'completed'", id)
        fresh = [row["id"] for row in rows if row["id"] not in done]
        if fresh:
            await site.amqp.envelopes("execution.completed", fresh, queue="execution.completed", copies=2)
        done.update(fresh)
        await asyncio.sleep(0.02)
    counted = await site.sql(
        "select task, count(*), count(distinct item) items from execution where parent = $1 group by 1", id
    )
    counts = {row["task"]: (row["count"], row["items"]) for row in counted}
    assert sorted(counts.values()) == [(1, 1), (60, 60)], f"children: {counts}"
    assert await client.result(id) == {"grown": list(range(1, 61)), "joined": 1}
    held = await _held_back(site)
    return f"60 ends told three times each to three executors: one join, 60 items; {held}"


async def _transaction(site: Site, id: UUID, old: tuple[str, ...], but: tuple[str, ...]) -> tuple[str, str]:
    """The first move out of one of these statuses, and which transaction wrote it."""
    query = "select new, xmin::text as by from history where execution_id = $1 and old = any($2) and new <> all($3) order by at"
    row = (await site.sql(query, id, old, but))[0]
    return row["new"], row["by"]


# -- helpers: start work, and read its state ----------------------------------------


async def _running(site: Site, ids: list[UUID], count: int) -> bool:
    return [await site.status(id) for id in ids].count("running") == count


async def _held_back(site: Site) -> str:
    """While psql holds its row, nothing of a workflow moves on, and every other one does."""
    id = await site.client.start("flow.two_steps", {"seconds": 1})
    await site.until(
        lambda: site.sql("select 1 from execution where parent = $1 and status = 'running'", id), "a step"
    )
    async with site.holding("select 1 from workflow where execution_id = $1 for update", id):
        await site.until(
            lambda: site.sql("select 1 from execution where parent = $1 and status = 'completed'", id),
            "the step to end",
        )
        assert await site.ends(await site.client.start("flow.fan", {"items": [1]})) == ["completed"]
        children = await site.value("select count(*) from execution where parent = $1", id)
        assert children == 1, "a workflow went on although somebody else held its row"
    assert await site.ends(id) == ["completed"]
    return "one whose row psql held stood still, others went on, and it went on afterwards"


async def _in_order(site: Site, ids: list[UUID]) -> None:
    began = await site.began(ids)
    let_in = await site.sql(
        "select execution_id from admission where execution_id = any($1) order by seq", ids
    )
    admitted = [row["execution_id"] for row in let_in]
    assert began == ids, (
        f"{len(ids)} of one lane began in the order {[ids.index(id) for id in began]} "
        f"and were let in in the order {[ids.index(id) for id in admitted]}"
    )


def _named(winners: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(winners.items()))
