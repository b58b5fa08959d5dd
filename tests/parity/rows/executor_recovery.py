"""A10 to A14: messages that are late or lost, and replicas that die."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from functools import partial
from typing import Any
from uuid import UUID

from tests.parity.host import Host
from tests.parity.site import Site


async def a10_timeouts_and_lost_envelopes(host: Host) -> str:
    """Timeout monitor: conditional on `scheduled` and older than the cutoff; lost envelopes are restaged; every clock."""
    site = await host.shared()
    client = site.client
    await _declare(site, "lost")
    ids = await client.start_many("flow.lost", [{"n": n} for n in range(10)])
    for id in ids:
        await site.comes_to(id, "scheduled")
    await site.until(partial(site.amqp.waits, "work.lost"), "the envelopes")
    purged = await site.amqp.purge("work.lost")
    clocks = {
        name: await client.start(f"flow.{name}") for name in ("unserved", "endless", "unanswered", "crowded")
    }
    second = await client.start("flow.crowded")
    runs = await client.start("flow.nap", {"seconds": 2})
    worker = site.worker("worker-lost", "--routes", "lost")
    ends_seen = await site.ends(*ids)
    assert set(ends_seen) == {"completed"}, f"of {purged} purged envelopes came {Counter(ends_seen)}"
    statuses = dict(zip(clocks, await site.ends(*clocks.values()), strict=True))
    statuses["queued"] = (await site.ends(second))[0]
    queued = {statuses.pop("crowded"), statuses.pop("queued")}
    assert queued == {"completed", "timeout"}, f"of two that crowd each other came {queued}"
    assert set(statuses.values()) == {"timeout"}, f"clocks: {statuses}"
    assert await site.ends(runs) == ["completed"], "what ran was ended by a clock of what waits"
    worker.close()
    async with host.site(executors=1, workers=0, schedule_to_start=1) as strict:
        late = await strict.client.start("flow.echo", {"n": 1})
        assert await strict.ends(late) == ["timeout"], (
            "PENSTOCK_SCHEDULE_TO_START did not end what nobody claims"
        )
    return (
        f"{purged} envelopes purged, 10 executions restaged and completed; schedule-to-start (its own and the setting's), "
        "total, waiting and queued end as timeout; what ran went on"
    )


async def a11_dead_letters(host: Host) -> str:
    """DLQ handler acts only on exactly `scheduled`, never overwrites newer state; fed by the broker; list, show, replay, drop."""
    site = await host.shared()
    client = site.client
    worker = site.worker("worker-letters", "--routes", "letters", "--concurrency", "1")
    occupied = await client.start("flow.occupy")
    await site.comes_to(occupied, "running")  # so that letters wait in the queue, and a worker lives for them
    flow = await client.start("flow.posted")
    await site.until(partial(site.amqp.waits, "work.letters"), "the workflow's letter")
    await _reject(site, "work.letters")
    assert await site.ends(flow) == ["completed"], (
        "the workflow of a dead letter did not take its failure route"
    )
    first = await client.start("flow.limited_letter", {"lane": "a11"})
    await site.until(partial(site.amqp.waits, "work.letters"), "a letter under a limit")
    second = await client.start("flow.limited_letter", {"lane": "a11"})
    await site.comes_to(second, "queued")
    await _reject(site, "work.letters")
    assert await site.ends(first) == ["failed"], "a dead letter did not fail its execution"
    await site.comes_to(second, "scheduled")

    def hold(channel: Any) -> Any:
        method, _, _ = channel.basic_get("penstock.work.letters")
        return method

    with site.amqp.channel() as channel:
        await site.until(partial(site.amqp.waits, "work.letters"), "the second letter")
        method = hold(channel)
        await client.cancel(occupied)
        assert await site.ends(second) == ["completed"], "work was held up by a copy that somebody kept"
        channel.basic_nack(method.delivery_tag, requeue=False)
    worker.close()
    await site.amqp.events("flow.unheard", [{"n": 1}], ["a11"], app_id="a11")
    await site.amqp.events("flow.ticked", [b"no json"], ["a11-poison"], app_id="a11")
    listed = await site.until(lambda: _letters(site, "flow.unheard", "not JSON"), "two letters to be kept")
    unheard, poison = listed
    output = await site.command("dead-letters", "show", poison["id"])
    assert "no json" in output.out, f"`dead-letters show` does not show the body: {output.out}"
    await site.apply('from penstock import Trigger\nTrigger("flow.unheard")\n', "unheard.py")
    await site.command("dead-letters", "replay", unheard["id"])
    await site.until(
        lambda: site.sql("select 1 from event where trigger = 'flow.unheard'"), "the replayed event"
    )
    await site.command("dead-letters", "drop", poison["id"])
    assert await _letters(site, "not JSON") is None, "a dropped letter is still there"
    assert await site.status(second) == "completed", "a dead letter overwrote an execution that had completed"
    return (
        "rejected envelopes come back by the broker: failed, slot freed, failure route taken; a late one "
        "left a completed execution alone; list, show, replay, drop"
    )


async def a12_loops_on_every_replica(host: Host) -> str:
    """All recovery loops on every replica."""
    site = await host.shared()
    executors = [service for service in site.services if service.name.startswith("executor")]

    async def turned() -> list[set[str]] | None:
        names_of_loops = [set(await service.metrics("penstock_loop_seconds_count")) for service in executors]
        needed = {
            "reap_workers",
            "relay_outbox",
            "recover_messages",
            "fire_timers",
            "end_overdue",
            "fire_schedules",
        }
        return names_of_loops if all(needed <= loops for loops in names_of_loops) else None

    names_of_loops = await site.until(turned, "every loop to turn on every replica")
    assert len({frozenset(loops) for loops in names_of_loops}) == 1, f"replicas differ: {names_of_loops}"
    failed = sum([await service.metric("penstock_loop_failures_total") for service in executors])
    assert failed == 0, f"{failed:g} turns of loops failed"
    return f"{len(names_of_loops)} replicas turn the same {len(names_of_loops[0])} loops: {', '.join(sorted(names_of_loops[0]))}"


async def a13_crashes(host: Host) -> str:
    """Replica crash at any point; redelivery; cross-replica completion; post-commit publish loss."""
    async with host.site(executors=2, workers=2) as site:
        client, chance, killed = site.client, random.Random(13), Counter[str]()
        ids: list[UUID] = []
        loading = asyncio.create_task(_load(site, ids))
        for number in range(6):
            await asyncio.sleep(0.7)
            role = "executor" if number % 2 else "worker"
            alive = [s for s in site.services if s.name.startswith(role) and s.process.poll() is None]
            chance.choice(alive).kill()
            killed[role] += 1
            (site.executor if role == "executor" else site.worker)(f"{role}-{number + 3}")
        await loading
        ends_seen = Counter(await site.ends(*ids))
        assert ends_seen == {"completed": len(ids)}, f"ends: {ends_seen}"
        doubled = await site.value(
            "select count(*) from (select from history where new = 'completed' group by execution_id having count(*) > 1) x"
        )
        assert doubled == 0, f"{doubled} completed twice"
        wrong = [id for id in ids[:40] if await client.result(id) != 1]
        assert not wrong, f"{len(wrong)} wrong results"
        await site.check()
    return (
        f"{len(ids)} workflows and events' executions through {killed['executor']} kill -9 of executors and "
        f"{killed['worker']} of workers: all completed once, `check` finds nothing (every crash point: "
        "tests/crash/points)"
    )


async def a14_history_and_archive(host: Host) -> str:
    """History of executions kept apart from the hot table, retention; native partitions, no extension needed."""
    async with host.site(executors=0, workers=0, archive_after=1) as site:
        for table in ("history", "archive"):
            await site.sql(
                f"create table {table}_20200101 partition of {table} for values from ('2020-01-01') to "
                "('2020-01-02')"
            )
        site.executor("executor-1")
        site.worker("worker-1")
        await site.ready()
        id = await site.client.start("flow.fan", {"items": [1, 2]})
        assert await site.ends(id) == ["completed"]
        await site.until(
            lambda: _gone(site, "select 1 from execution where id = $1", id), "the run to be archived"
        )
        output, history = await asyncio.gather(
            site.command("show", id, "--json"), site.command("history", id, "--json")
        )
        assert output.one["result"] == {"grown": [2, 3], "joined": 1}, (
            f"`show` of an archived run: {output.out[:200]}"
        )
        assert history.lines[-1]["new"] == "completed"
        await site.until(
            lambda: _gone(site, "select 1 from pg_class where relname like '%_20200101'"),
            "partitions of 2020 to be dropped",
        )
        partitioned = {
            row[0] for row in await site.sql("select partrelid::regclass::text from pg_partitioned_table")
        }
        assert {"history", "archive", "event"} <= partitioned, f"partitioned: {partitioned}"
        extensions = [row[0] for row in await site.sql("select extname from pg_extension")]
        assert extensions == ["plpgsql"], f"extensions: {extensions}"
    return (
        "archived after its end, `show` and `history` still tell of it; old days dropped; partitioned: "
        f"{', '.join(sorted(partitioned))}; no extension"
    )


# -- helpers: start work, and read its state ----------------------------------------


async def _declare(site: Site, route: str) -> None:
    """Let a worker declare the queue of a route, and go."""
    worker = site.worker(f"declares-{route}", "--routes", route)
    await worker.ready()
    worker.send(signal.SIGTERM)
    await worker.ended()


async def _reject(site: Site, queue: str) -> None:
    """Take what waits, and refuse it: the broker makes it a dead letter."""

    def reject(channel: Any) -> None:
        method, _, _ = channel.basic_get(f"penstock.{queue}")
        assert method is not None, f"nothing waits in {queue}"
        channel.basic_nack(method.delivery_tag, requeue=False)

    await site.amqp.call(reject)


async def _letters(site: Site, *reasons: str) -> list[Any] | None:
    listed = (await site.command("dead-letters", "list", "--json")).lines
    mine = [[letter for letter in listed if reason in letter["reason"]] for reason in reasons]
    return [letters_found[0] for letters_found in mine] if all(mine) else None


async def _load(site: Site, ids: list[UUID]) -> None:
    """Workflows from the client and events from a foreign one, over some seconds."""
    for round in range(8):
        for n in range(5):
            ids.append(await site.client.start("flow.two_steps", {"seconds": 0.2}))
            if n == 0:
                numbers = range(10 * round, 10 * round + 10)
                await site.amqp.events(
                    "flow.ticked",
                    [{"n": 2 * n} for n in numbers],
                    [f"a13-{n}" for n in numbers],
                    app_id="a13",
                )
        await asyncio.sleep(0.3)
    of_events = await site.until(partial(site.executions_of, "a13", 80), "80 executions of 80 events", 60)
    ids.extend(of_events)


async def _gone(site: Site, query: str, *args: Any) -> bool:
    return not await site.sql(query, *args)
