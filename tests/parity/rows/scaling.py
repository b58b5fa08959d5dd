"""S1, S4 to S6 and S8: several runners on one database."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.crash.processes import ROOT
from tests.parity.host import Host
from tests.parity.services import Service


async def s01_atomic_claim(host: Host) -> str:
    """Atomic claim by a runner; a second claim skips silently; claiming cannot be turned off to lose safety."""
    site = await host.shared()
    ids = await site.client.start_many("flow.steady", [{"seconds": 0.05, "n": n} for n in range(150)])
    await site.amqp.envelopes("work", ids[:100], queue="work.default", copies=10)
    await site.amqp.envelopes("work", ids[100:], queue="work.default", copies=10)
    assert Counter(await site.ends(*ids)) == {"completed": 150}
    rows = await site.sql(
        "select execution_id, count(*), min(actor) as actor from history where new = 'running' and "
        "execution_id = any($1) group by 1",
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
    result = await site.command("workers", "list", code=None, enable_claiming="false")
    assert result.code != 0, "PENSTOCK_ENABLE_CLAIMING is taken, and claims nothing"
    return (
        "150 executions, ten copies of their envelopes, two workers "
        f"({', '.join(f'{name} {n}' for name, n in shares.items())}): each claimed once, silently; no setting "
        "turns claims off"
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
    return (
        "`*::ml::*` ran on the worker of `gpu`, `scaling::heavy_*` on that of `big`, the rest on default; zone=eu "
        "where the label is; `why` names the route nobody serves"
    )


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
    return (
        f"{len(mine)} processes have connections to PostgreSQL and RabbitMQ and one port each, that of "
        "health; each of two executors can be missing"
    )


async def s08_configuration(host: Host) -> str:
    """Configuration reference with defaults; relations validated at start with a clear error."""
    site = await host.shared()
    bad: dict[str, dict[str, Any]] = {
        "at least 3 x": {"stale_threshold": 2, "heartbeat_interval": 1, "sweep_interval": 0.5},
        "below stale_threshold": {"stale_threshold": 10, "heartbeat_interval": 1, "sweep_interval": 10},
        "greater than 0": {"heartbeat_interval": -1},
        "unknown setting": {"heartbeat_intervall": 1},
        "valid number": {"stale_threshold": "soon"},
    }
    results = await asyncio.gather(
        *(site.command("executor", code=None, **settings) for settings in bad.values())
    )
    for words, result in zip(bad, results, strict=True):
        assert result.code != 0, f"taken: {result.all[:200]}"
        assert words in result.all, f"instead of {words!r}: {result.all[:200]}"
    reference = ROOT.joinpath("docs/configuration.md").read_text()
    listed = dict(re.findall(r"^\| `PENSTOCK_(\w+)` \| `([^`]+)`", reference, re.MULTILINE))
    defaults = {"HEARTBEAT_INTERVAL": "10", "STALE_THRESHOLD": "60", "SWEEP_INTERVAL": "30"}
    wrong = {name: listed.get(name) for name, default in defaults.items() if listed.get(name) != default}
    assert not wrong, f"the reference says {wrong}"
    return (
        f"{len(bad)} wrong configurations refused at start, by name "
        f"({results[0].all.strip().splitlines()[0][:110]}); {len(listed)} settings with defaults in "
        "docs/configuration.md"
    )


# -- helpers: start work, and read its state ----------------------------------------


async def _said(service: Service, event: str) -> bool:
    return bool(service.lines(event))
