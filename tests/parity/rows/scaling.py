"""S1 to S8: several runners on one database."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import psutil

from tests.chaos.proxy import Proxy
from tests.crash.processes import ROOT
from tests.parity.host import Host
from tests.parity.services import Service
from tests.parity.site import Site


async def s01_atomic_claim(host: Host) -> str:
    """Atomic claim by a runner; a second claim skips silently; claiming cannot be turned off to lose safety."""
    site = await host.shared()
    ids = await site.client.start_many("flow.steady", [{"seconds": 0.05, "n": n} for n in range(150)])
    await site.amqp.envelopes("work", ids[:100], queue="work.default", copies=10)
    await site.amqp.envelopes("work", ids[100:], queue="work.default", copies=10)
    assert Counter(await site.ends(*ids)) == {"completed": 150}
    rows = await site.sql(
        "select execution_id, count(*), min(actor) as actor from history where new = 'running' and execution_id = any($1) group by 1",
        ids,
    )
    assert all(row["count"] == 1 for row in rows), "an execution was claimed twice"
    shares = Counter(row["actor"] for row in rows)
    workers = [service for service in site.services if service.name in ("worker-1", "worker-2")]
    noise = [
        line
        for worker in workers
        for line in worker.lines()
        if line["level"] in ("warning", "error") and "claim" in line["event"]
    ]
    assert not noise, f"a second claim is not silent: {noise[:2]}"
    said = await site.command("workers", "list", code=None, enable_claiming="false")
    assert said.code != 0, "PENSTOCK_ENABLE_CLAIMING is taken, and claims nothing"
    return f"150 executions, ten copies of their envelopes, two workers ({', '.join(f'{name} {n}' for name, n in shares.items())}): each claimed once, silently; no setting turns claims off"


async def s02_heartbeat_verifies_the_claim(host: Host) -> str:
    """Heartbeat refreshes and verifies the claim; `ClaimLost` stops the work; one batched write per worker."""
    async with host.site(workers=2) as site:
        before = await _writes(site)
        many = await site.client.start_many("flow.nap", [{"seconds": 4} for _ in range(20)])
        id = await site.client.start("flow.steady", {"seconds": 9})
        frozen = await site.runs_on(id)
        await asyncio.sleep(3)
        writes = await _writes(site) - before
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
    return f"{writes} heartbeat writes for 21 executions; a worker frozen for longer than the threshold lost its claim, was told, and its result was refused"


async def s03_stale_claims_are_swept(host: Host) -> str:
    """Sweeper on every replica, reset to ready, logged with runner and age; max recoveries then abandoned; grace after an outage."""
    async with host.alone(executors=2, workers=2) as (site, postgres):
        steady = await site.client.start("flow.steady", {"seconds": 6})
        victim = await site.runs_on(steady)
        doomed = [
            await site.client.start(f"scaling.{name}") for name in ("fragile", "once") for _ in range(4)
        ]
        homes = {id: await site.runs_on(id) for id in doomed}
        assert victim in homes.values(), "all eight went to one of two workers"
        victim.kill()
        lost = [id for id in doomed if homes[id] is victim]
        ended = {
            (await site.client.get(id)).action: end
            for id, end in zip(lost, await site.ends(*lost), strict=True)
        }
        assert set(ended.items()) <= {("scaling.fragile", "abandoned"), ("scaling.once", "failed")}, (
            f"ends: {ended}"
        )
        assert await site.ends(steady) == ["completed"]
        found = await site.client.get(steady)
        assert (found.attempt, found.recoveries) == (2, 1), (
            f"attempt {found.attempt}, {found.recoveries} recoveries"
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
        f"killed worker swept once by two replicas ({lines[0]['name']}, {lines[0]['age_seconds']:.1f} s, {lines[0]['recovered']} taken back), "
        f"its work ran again; ends: {ended}; an outage of 5 s is nobody's loss"
    )


async def s04_names(host: Host) -> str:
    """Runner id and human-readable runner name, in every log line."""
    async with host.site(executors=0, workers=0) as site:
        executor, worker = site.executor("sched-east-1"), site.worker("gpu-east-1a")
        await site.ready()
        id = await site.client.start("flow.echo", {"n": 1})
        await site.ends(id)
        listed = await site.command("workers", "list")
        assert "gpu-east-1a" in listed.out, f"`workers list` does not name it: {listed.out}"
        actors = {move.actor for move in await site.client.history(id) if move.actor}
        assert any("gpu-east-1a" in actor for actor in actors), f"the history names {actors}"
        worker.kill()
        await site.until(
            lambda: _said(executor, "reap_workers.process_lost"), "a line about a lost worker", 60
        )
        for service, event in ((executor, "executor.started"), (worker, "worker.started")):
            [started] = service.lines(event)
            ids = {value for value in started.values() if re.fullmatch(r"[0-9a-f-]{36}", str(value))}
            for line in service.lines():
                values = {str(value) for value in line.values()}
                assert service.name in values, f"a line without the runner's name: {line}"
                assert ids & values, f"a line without the runner's id: {line}"
    return (
        "id and name are in every line of the log; the name in `workers list` and in each move of the history"
    )


async def s05_routes_and_labels(host: Host) -> str:
    """Ordered glob routing, heterogeneous workers by route; labels on workers."""
    site = await host.shared()
    client = site.client
    parked = await client.start("scaling.in_europe")
    trained, heavy = (
        await client.start("ml.train", {"n": 1}),
        await client.start("scaling.heavy_sum", {"n": 2}),
    )
    plain = await client.start("flow.echo", {"n": 3})
    assert await site.ends(parked, plain) == ["completed"] * 2
    assert (await site.runs_on(parked)).name == "worker-2", "what asks for a label ran where there is none"
    why = await site.command("why", trained)
    assert "gpu" in why.out, f"`why` does not name the route: {why.out}"
    gpu, big = (
        site.worker("worker-gpu", "--routes", "gpu"),
        site.worker("worker-big", "--routes", "big,bigger"),
    )
    assert await site.ends(trained, heavy) == ["completed"] * 2
    where = [(await site.runs_on(id)).name for id in (trained, heavy)]
    assert where == ["worker-gpu", "worker-big"], f"they ran on {where}"
    for worker in (gpu, big):
        worker.close()
    return "`*::ml::*` ran on the worker of `gpu`, `**::heavy_*` on that of `big`, the rest on default; zone=eu where the label is; `why` names the route nobody serves"


async def s06_no_leader(host: Host) -> str:
    """No leader, no runner-to-runner talk."""
    site = await host.shared()
    allowed = {urlsplit(site.database).port, urlsplit(site.broker).port}
    mine = [service for service in site.services if service.process.poll() is None]
    talk, listens = [], []
    for service in mine:
        for connection in psutil.Process(service.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port != service.port:
                listens.append((service.name, connection.laddr.port))
            outgoing = connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port != service.port
            if outgoing and connection.raddr.port not in allowed:
                talk.append((service.name, connection.raddr.port))
    assert not talk, f"connections to others than PostgreSQL and RabbitMQ: {talk}"
    assert not listens, f"ports beside that of health: {listens}"
    async with host.site(executors=2, workers=1) as pair:
        for name in ("executor-1", "executor-2"):
            next(s for s in pair.services if s.name == name and s.process.poll() is None).kill()
            id = await pair.client.start("flow.fan", {"items": [1, 2]})
            assert await pair.ends(id) == ["completed"], f"without {name} nothing went on"
            pair.executor(name)
            await pair.ready()
    return f"{len(mine)} processes have connections to PostgreSQL and RabbitMQ and one port each, that of health; each of two executors can be missing"


async def s07_partition(host: Host) -> str:
    """Partition: claim kept if reconnected before the sweep, `ClaimLost` after; failover of the database handled by the pool."""
    async with (
        host.alone(executors=1, workers=1) as (site, postgres),
        _behind_a_link(site) as (link, cut_off),
    ):
        one = await _on(site, cut_off, seconds=6)
        link.cut()
        await asyncio.sleep(1.5)
        link.heal()
        assert await site.ends(one) == ["completed"]
        assert (await site.client.get(one)).attempt == 1, (
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
    return "cut off for 1.5 s: the claim is kept; for longer than the threshold: taken, and nothing of the old owner's is written; PostgreSQL killed under 40 executions: all completed"


async def s08_configuration(host: Host) -> str:
    """Configuration reference with defaults; relations validated at start with a clear error."""
    site = await host.shared()
    bad = {
        "at least 3 x": {"stale_threshold": 2, "heartbeat_interval": 1, "sweep_interval": 0.5},
        "below stale_threshold": {"stale_threshold": 10, "heartbeat_interval": 1, "sweep_interval": 10},
        "greater than 0": {"heartbeat_interval": -1},
        "unknown setting": {"heartbeat_intervall": 1},
        "valid number": {"stale_threshold": "soon"},
    }
    said = await asyncio.gather(
        *(site.command("executor", code=None, **settings) for settings in bad.values())
    )
    for words, one in zip(bad, said, strict=True):
        assert one.code != 0 and words in one.all, (
            f"instead of {words!r}: exit code {one.code}, {one.all[:200]}"
        )
    reference = ROOT.joinpath("docs/configuration.md").read_text()
    listed = dict(re.findall(r"^\| `PENSTOCK_(\w+)` \| `([^`]+)`", reference, re.MULTILINE))
    defaults = {"HEARTBEAT_INTERVAL": "10", "STALE_THRESHOLD": "60", "SWEEP_INTERVAL": "30"}
    wrong = {name: listed.get(name) for name, default in defaults.items() if listed.get(name) != default}
    assert not wrong, f"the reference says {wrong}"
    return f"{len(bad)} wrong configurations refused at start, by name ({said[0].all.strip().splitlines()[0][:110]}); {len(listed)} settings with defaults in docs/configuration.md"


# -- doing and looking -----------------------------------------------------------------------------------------------


async def _said(service: Service, event: str) -> bool:
    return bool(service.lines(event))


async def _writes(site: Site) -> int:
    """Updates of the rows that say who lives."""
    await site.sql("select pg_stat_force_next_flush()") if await _knows_flush(site) else None
    return int(await site.value("select n_tup_upd from pg_stat_user_tables where relname = 'process'"))


async def _knows_flush(site: Site) -> bool:
    return bool(await site.value("select count(*) from pg_proc where proname = 'pg_stat_force_next_flush'"))


@asynccontextmanager
async def _behind_a_link(site: Site) -> AsyncIterator[tuple[Proxy, Service]]:
    """A worker whose way to PostgreSQL can be cut."""
    url = urlsplit(site.database)
    assert url.port
    async with Proxy(url.port) as link:
        way = urlunsplit(url._replace(netloc=url.netloc.replace(f":{url.port}", f":{link.port}")))
        worker = site.worker("worker-far", database=way)
        await site.ready()
        yield link, worker
        link.heal()


async def _on(site: Site, worker: Service, *, seconds: float) -> object:
    """An execution that runs on this worker."""
    for _ in range(40):
        id = await site.client.start("flow.steady", {"seconds": seconds})
        if await site.runs_on(id) is worker:
            return id
        await site.client.cancel(id)
    raise AssertionError(f"of 40 executions none came to {worker.name}")
