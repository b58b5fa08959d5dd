"""S2, S3 and S7: runners that hang, die, or are cut off."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from tests.chaos.proxy import Proxy
from tests.parity.host import Host
from tests.parity.services import Service
from tests.parity.site import Site


async def s02_heartbeat_verifies_the_claim(host: Host) -> str:
    """Heartbeat refreshes and verifies the claim; `ClaimLost` stops the work; one batched write per worker."""
    async with host.site(workers=2) as site:
        count = await _writes(site)
        many = await site.client.start_many("flow.nap", [{"seconds": 4} for _ in range(20)])
        id = await site.client.start("flow.steady", {"seconds": 9})
        frozen = await site.runs_on(id)
        await asyncio.sleep(3)
        writes = await _writes(site) - count
        assert writes <= 3 * 8, (
            f"{writes} writes of heartbeats for three processes and 21 executions in about 3 s"
        )
        oldest = await site.value(
            "select extract(epoch from clock_timestamp() - min(beat_at))::float8 from process"
        )
        assert oldest < 3, f"a heartbeat is {oldest:.1f} s old at an interval of 1 s"
        frozen.send(signal.SIGSTOP)
        other = await site.runs_on(id, attempt=2)
        frozen.send(signal.SIGCONT)
        assert await site.ends(id, *many) == ["completed"] * 21
        result = await site.client.result(id)
        assert result["pid"] == other.pid, "the result is that of the worker which had lost its claim"

        async def told() -> bool:
            return await frozen.metric("penstock_claims_lost_total") > 0

        await site.until(told, "the worker that was frozen to be told")
    return (
        f"{writes} heartbeat writes for 21 executions; a worker frozen for longer than the threshold lost its "
        "claim, was told, and its result was refused"
    )


async def s03_stale_claims_are_swept(host: Host) -> str:
    """Sweeper on every replica, reset to ready, logged with runner and age; max recoveries then abandoned; grace
    after an outage."""
    async with host.alone(executors=2, workers=2) as (site, postgres):
        steady = await site.client.start("flow.steady", {"seconds": 6})
        victim = await site.runs_on(steady)
        doomed = [
            await site.client.start(f"scaling.{name}") for name in ("fragile", "once") for _ in range(4)
        ]
        homes = {id: await site.runs_on(id) for id in doomed}
        assert victim in homes.values(), "all eight went to one of two workers"
        victim.kill()
        lost_ids = [id for id in doomed if homes[id] is victim]
        ends_seen = {
            (await site.client.get(id)).action: end
            for id, end in zip(lost_ids, await site.ends(*lost_ids), strict=True)
        }
        assert set(ends_seen.items()) <= {("scaling.fragile", "abandoned"), ("scaling.once", "failed")}, (
            f"ends: {ends_seen}"
        )
        assert await site.ends(steady) == ["completed"]
        execution = await site.client.get(steady)
        assert (execution.attempt, execution.recoveries) == (2, 1), (
            f"attempt {execution.attempt}, {execution.recoveries} recoveries"
        )
        sweepers = [s for s in site.services if s.name.startswith("executor")]
        lines = [line for s in sweepers for line in s.lines("reap_workers.process_lost")]
        assert len(lines) == 1, f"{len(lines)} replicas say that they swept one worker"
        assert lines[0]["name"] == victim.name, f"the log names {lines[0]}"
        site.worker("worker-3")
        await site.ready()
        through = [await site.client.start("flow.steady", {"seconds": 5, "n": n}) for n in range(6)]
        for id in through:
            await site.comes_to(id, "running")
        await asyncio.to_thread(postgres.stop, immediate=True)
        await asyncio.sleep(5)
        await asyncio.to_thread(postgres.start)
        assert set(await site.ends(*through)) == {"completed"}
        blamed = [(await site.client.get(id)).recoveries for id in through]
        assert not any(blamed), (
            f"an outage of 5 s at a threshold of 3 s counts as a loss of workers: {blamed}"
        )
    return (
        f"killed worker swept once by two replicas ({lines[0]['name']}, {lines[0]['age_seconds']:.1f} s, "
        f"{lines[0]['recovered']} taken back), "
        f"its work ran again; ends: {ends_seen}; an outage of 5 s is nobody's loss"
    )


async def s07_partition(host: Host) -> str:
    """Partition: claim kept if reconnected before the sweep, `ClaimLost` after; failover of the database handled by the pool."""
    async with (
        host.alone(executors=1, workers=1) as (site, postgres),
        _behind_a_link(site) as (link, cut_off),
    ):
        execution = await _on(site, cut_off, seconds=6)
        link.cut()
        await asyncio.sleep(1.5)
        link.heal()
        assert await site.ends(execution) == ["completed"]
        assert (await site.client.get(execution)).attempt == 1, (
            "a claim was lost although its worker came back in time"
        )
        two = await _on(site, cut_off, seconds=9)
        link.cut()
        other = await site.runs_on(two, attempt=2)
        link.heal()
        assert await site.ends(two) == ["completed"]
        assert (await site.client.result(two))["pid"] == other.pid, (
            "the worker that was cut off wrote its result"
        )
        doubled = await site.value(
            "select count(*) from history where execution_id = $1 and new = 'completed'", two
        )
        assert doubled == 1
        ids = await site.client.start_many("flow.steady", [{"seconds": 0.5, "n": n} for n in range(40)])
        await asyncio.to_thread(postgres.kill)
        await asyncio.to_thread(postgres.start)
        assert set(await site.ends(*ids)) == {"completed"}
        await site.check()
    return (
        "cut off for 1.5 s: the claim is kept; for longer than the threshold: taken, and nothing of the old "
        "owner's is written; PostgreSQL killed under 40 executions: all completed"
    )


# -- helpers: start work, and read its state ----------------------------------------


async def _writes(site: Site) -> int:
    """Count the updates of the rows of live processes."""
    return int(await site.value("select n_tup_upd from pg_stat_user_tables where relname = 'process'"))


@asynccontextmanager
async def _behind_a_link(site: Site) -> AsyncIterator[tuple[Proxy, Service]]:
    """Start a worker with a way to PostgreSQL that can be cut."""
    url = urlsplit(site.database)
    assert url.port
    async with Proxy(url.port) as link:
        way = urlunsplit(url._replace(netloc=url.netloc.replace(f":{url.port}", f":{link.port}")))
        worker = site.worker("worker-far", database=way)
        await site.ready()
        yield link, worker
        link.heal()


async def _on(site: Site, worker: Service, *, seconds: float) -> UUID:
    """An execution that runs on this worker."""
    for _ in range(40):
        id = await site.client.start("flow.steady", {"seconds": seconds})
        if await site.runs_on(id) is worker:
            return id
        await site.client.cancel(id)
    raise AssertionError(f"of 40 executions none came to {worker.name}")
