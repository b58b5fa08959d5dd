"""The deeds of people and loops on a running system: at its desk, by typed commands, and when something is old or lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from uuid import UUID

from penstock import Limit, cli, tracing
from penstock.client import dead_letters, executions
from penstock.client.bulk import tally
from penstock.client.limits import Limits
from penstock.errors import Conflict
from penstock.language.loading import Definitions
from penstock.messaging import envelope
from penstock.messaging.relay import RETURNS, relay
from penstock.operate.apply import register
from penstock.operate.repair import repair
from penstock.service.assembly import assembled
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.outbox.dead_letters import LetterFilter
from penstock.store.processes import processes
from tests.crash.points.world import World, again

LETTER = """
insert into dead_letter (id, queue, reason, body, fingerprint)
values (gen_random_uuid(), 'execution.requested', 'x', convert_to($1, 'utf8'), $1) on conflict do nothing
"""


async def operator(world: World) -> None:
    """Do the deeds of an operator: each may be done again, and the last one counts."""
    await again(
        lambda: register(world.session, Definitions([Limit(2, ref="pt.one", scope="pt.one_at_a_time")]))
    )
    limits = Limits(world.session, world.parts.publisher)
    await again(lambda: limits.set("pt.one", max=3))
    await again(lambda: limits.remove("pt.one"))
    await world.until("select 1 from process where kind = 'worker' and state = 'active'")
    [[name]] = await world.rows("select name from process where kind = 'worker' and state <> 'dead' limit 1")
    await again(lambda: processes.cordon(world.session, [name]))
    await again(lambda: processes.uncordon(world.session, [name]))
    flow = await world.start("pt.napping", "paused")
    await world.until("select 1 from workflow where execution_id = $1", flow)
    for command in ("pause", "resume"):
        with contextlib.suppress(Conflict):
            await again(lambda command=command: world.client.command(flow, command, by="ada"))  # type: ignore[misc]
    charge = await world.start("pt.charge", "charge", {"order": 4})
    await world.rows(LETTER, envelope.encode("execution.requested", [charge]).decode())
    for row in await world.rows("select id from dead_letter"):
        chosen = LetterFilter([row["id"]])
        await again(lambda chosen=chosen: tally(dead_letters.replay(world.client, chosen)))  # type: ignore[misc]
    await again(lambda: dead_letters.drop(world.session, LetterFilter(reason="nothing like it")))
    await again(lambda: world.client.cancel(flow))
    await world.ended(flow, charge)
    if world.first:
        await again(lambda: world.client.rerun(charge, by="ada"))
        charges = ExecutionFilter(action="pt.charge")
        await again(lambda: tally(executions.rerun(world.client, charges, by="ada")))


async def the_last_word_counts(world: World) -> None:
    assert await world.value("select max from concurrency_limit where ref = 'pt.one'") == 2
    assert set(await world.results("pt.charge")) == {"4"}
    assert await world.value("select count(*) from dead_letter") == 0
    assert await world.value("select count(*) from process where state = 'cordoned'") == 0


OLD = "create table history_20200101 partition of history for values from ('2020-01-01') to ('2020-01-02')"


UNMATCHED = "insert into unmatched (event_id, since) values (gen_random_uuid(), clock_timestamp() - interval '1 hour')"
"""An event whose message was lost, and that is gone by now."""


async def upkeep(world: World) -> None:
    """Take one turn of every loop, after work with a lost message, and a subscription that gives back its messages."""
    from penstock_executor.loops import LOOPS

    execution = await world.start("pt.unserved", "lost")
    await world.reached(execution, "scheduled")
    await world.rows("delete from outbox where queue = 'work.nowhere'")
    await world.rows("delete from live where execution_id = $1", execution)
    await again(
        lambda: repair(world.parts.database.session(), world.parts.publisher, apply=True, only=["I10a"])
    )
    await world.ended(await world.start("pt.nap", "long", {"seconds": 1.1}))
    await world.ended(await world.start("pt.charge", "done", {"order": 1}))
    await world.rows(UNMATCHED)
    os.environ["OTEL_TRACES_EXPORTER"] = (
        "console"  # of this process, so that the loop that sends spans takes its turn
    )
    tracing.exporting.cache_clear()
    for loop in LOOPS:
        async with loop.context(world.parts, world.session) as turn:
            await again(turn)
    if world.first:
        await world.until("select 1 from outbox where queue = 'work.nowhere'")
        subscription = await again(lambda: world.parts.transport.subscribe("work.nowhere", 1))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await subscription.receive(1)
        await subscription.close()
    await again(lambda: world.client.cancel(execution))
    await world.ended(execution)


async def nothing_was_lost(world: World) -> None:
    archived = await world.rows(
        "select result #>> '{}' from archive where namespace like '%charge' and status = 'completed'"
    )
    assert [row[0] for row in archived] + await world.results("pt.charge") == ["1"]


COMMANDS = "command line"
"""The thread that typed commands run in, as the points name it."""


async def typed(world: World, *words: object) -> None:
    """`penstock WORDS`, in a thread of its own; typed once more if it failed, as people do."""
    settings = world.parts.settings
    for name in ("database_url", "broker_url"):
        if (url := getattr(settings, name)) is not None:
            os.environ[f"PENSTOCK_{name.upper()}"] = url.get_secret_value()
    finished, codes = asyncio.Event(), [1]
    loop = asyncio.get_running_loop()

    def run() -> None:
        try:
            cli.main([str(word) for word in words])
        except SystemExit as end:
            codes.append(int(end.code or 0))
        finally:
            loop.call_soon_threadsafe(finished.set)

    for _ in range(2):
        finished.clear()
        threading.Thread(target=run, name=COMMANDS).start()
        await finished.wait()
        if codes[-1] == 0:
            return


async def commands(world: World) -> None:
    """Do the same by typed commands, of which each is a client that may be killed."""
    await typed(world, "publish", "pt.placed", "id=5", "--key", "typed")
    await typed(world, "run", "pt.charge", "order=6", "--key", "charge")
    await typed(world, "run", "pt.ask", "--key", "ask")
    await typed(world, "run", "pt.napping", "--key", "flow")
    await typed(world, "limit", "set", "pt.one", 2)
    await typed(world, "limit", "rm", "pt.one")
    await typed(world, "schedule", "disable", "pt.twice")
    await typed(world, "announce", "failed")
    ids: dict[str, UUID] = {
        row["action"]: row["id"]
        for row in await world.until(
            "select n.action, e.id from execution e join namespace n on n.id = e.namespace_id "
            "where n.action = any('{pt.ask,pt.napping,pt.charge}') and (select count(*) from execution) >= 4"
        )
    }
    await world.reached(ids["pt.ask"], "waiting")
    await typed(world, "answer", ids["pt.ask"], "true")
    await world.until(
        "select 1 where exists (select from workflow where execution_id = $1) "
        "or exists (select from execution where id = $1 and finished_at is not null)",
        ids["pt.napping"],
    )
    await typed(world, "pause", ids["pt.napping"])
    await typed(world, "cancel", ids["pt.napping"])
    await world.rows(LETTER, envelope.encode("execution.requested", [ids["pt.charge"]]).decode())
    for row in await world.rows("select id from dead_letter"):
        await typed(world, "dead-letters", "replay", row["id"])


async def each_was_obeyed(world: World) -> None:
    assert await world.results("pt.charge") == ["5", "6"]
    assert await world.results("pt.ask") == ["true"]
    assert (
        await world.value("select count(*) from execution where status = 'cancelled' and parent is null") == 1
    )
    assert await world.value("select count(*) from dead_letter") == 0
    assert await world.value("select count(*) from schedule where ref = 'pt.twice' and not enabled") == 1
    assert await world.value("select announced from cluster") == ["failed"]
    assert await world.value("select count(*) from concurrency_limit where ref = 'pt.one' and max <> 1") == 0


LEFT_BEHIND = """
insert into outbox (queue, ids, due_at, tries) select q, array[$1::uuid], clock_timestamp() - interval '1 hour', $2
from unnest(array['execution.requested', 'nobody.knows']) q
"""


async def left_behind(world: World) -> None:
    """Leave messages of a dead publisher: one that goes out, one without a queue; and a moment without a broker."""
    charge = await world.start("pt.charge", "charge", {"order": 1})
    await world.ended(charge)
    async with assembled(world.parts.settings, role="away") as parts:
        await parts.transport.close()
        await world.rows(LEFT_BEHIND, charge, RETURNS - 2)
        await again(lambda: relay(parts.transport, world.session, 0.0))
    await world.until("select 1 where not exists (select from outbox where queue = 'execution.requested')")
    while await world.rows("select 1 from outbox where queue = 'nobody.knows'"):
        await world.rows(
            "update outbox set due_at = clock_timestamp() - interval '1 hour' where queue = 'nobody.knows'"
        )
        await asyncio.sleep(0.05)


async def it_went_out_or_was_kept(world: World) -> None:
    assert await world.results("pt.charge") == ["1"]
    rows = await world.rows("select queue, reason from dead_letter")
    assert [tuple(row) for row in rows] == [("nobody.knows", "unroutable")]
