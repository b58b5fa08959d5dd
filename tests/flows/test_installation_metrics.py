"""The metrics of the whole installation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta

import orjson
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from pydantic import ValidationError

from penstock import Limit, action, ask, workflow
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.upkeep import figures
from penstock_executor import installation_metrics
from penstock_executor.loops import measure_work
from tests.flows import shop
from tests.flows.installation import Installation


@action(pack="shop", limits=[Limit(1)])
async def alone(seconds: float) -> None:
    await asyncio.sleep(seconds)


@action(pack="shop")
async def asks() -> None:
    await ask("May I?")


@workflow(pack="shop")
def flow() -> None:
    shop.wait_for(seconds=600)


@workflow(pack="shop")
def pair() -> None:
    shop.count(words="a b")


@action(pack="shop", route="nowhere")
async def unserved() -> None: ...


@pytest.fixture(autouse=True)
def nothing_commits_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "COMMITTED", timedelta(0))


async def measured(parts: Parts, *, anew: bool = True) -> dict[str, float]:
    """Return the metrics of a replica once its loop had its turn. `anew`: after all that has happened, measured by any
    replica: the executor of the house has the same loop."""
    session = parts.database.session()
    [now] = await session.fetch("select clock_timestamp() as at")
    for _ in range(200 if anew else 1):
        if anew:
            await session.fetch("update figures set due_at = clock_timestamp()")
        await measure_work.turn(parts, session)
        if await session.fetch("select 1 from figures where measured_at >= $1", now["at"]):
            break
        await asyncio.sleep(0.05)
    else:
        assert not anew, "nobody measured"
    registry = CollectorRegistry()
    registry.register(installation_metrics.shown(parts))
    lines = (
        line.rsplit(" ", 1) for line in generate_latest(registry).decode().splitlines() if line[0] != "#"
    )
    return {name.removeprefix("penstock_"): float(value) for name, value in lines}


def named(name: str, label: str, values: Iterable[str]) -> list[str]:
    return [f'{name}{{{label}="{value}"}}' for value in values]


async def test_waiting_work_is_counted_by_its_cause(house: Installation) -> None:
    await house.apply(*shop.ALL, alone, asks, unserved, flow)
    await house.start(*shop.ALL, alone, asks)
    await house.client.start_many("shop.alone", [{"seconds": 600}] * 3)
    await house.client.start("shop.charge", {"order": 1}, delay=3600)
    await house.client.start("shop.asks", {})
    await house.client.start("shop.unserved", {})
    await house.client.start("shop.flow", {})
    await house.until("select 1 from inquiry")
    await house.until("select 1 from execution having count(*) filter (where status = 'running') = 3")
    await house.until("select 1 from waiter having count(*) = 2")
    figures = await measured(await house.parts("executor"))
    causes = {"limit": 2, "worker": 1, "no_worker": 0, "executor": 0, "timer": 1, "event": 0, "human": 1}
    assert [figures[name] for name in named("waiting", "cause", causes)] == list(causes.values())
    assert (figures["actions_running"], figures["workflows_running"]) == (2, 1)
    assert [figures[name] for name in named("route_ready", "route", ("default", "nowhere"))] == [0, 1]
    assert [figures[name] for name in named("route_running", "route", ("default",))] == [2]
    assert [figures[name] for name in named("route_workers", "route", ("default", "nowhere"))] == [1, 0]
    assert figures['route_oldest_seconds{route="nowhere"}'] > 0
    assert figures['route_slots{route="default"}'] > 0
    assert figures['processes{kind="worker",state="active"}'] == 1


async def test_work_in_line_for_want_of_a_worker_waits_on_its_route(house: Installation) -> None:
    await house.apply(alone, unserved)
    await house.executor()
    await house.client.start_many("shop.alone", [{"seconds": 1}] * 2)
    await house.client.start("shop.unserved", {})
    await house.until("select 1 from lane where gate_kind = 'worker'")
    await house.until("select 1 from execution where status = 'scheduled'")
    figures = await measured(await house.parts("executor"))
    assert figures['waiting{cause="no_worker"}'] == 2
    assert [figures[name] for name in named("route_ready", "route", ("default", "nowhere"))] == [2, 1]
    assert figures['route_oldest_seconds{route="default"}'] > 0
    for figure in ("route_running", "route_workers", "route_slots"):
        assert [figures[name] for name in named(figure, "route", ("default", "nowhere"))] == [0, 0]


async def test_every_end_is_counted_once_whichever_replica_measures(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.start(*shop.ALL)
    replica_parts, other = await house.parts("executor"), await house.parts("executor")
    metric = 'executions_ended_total{action="shop.charge",status="completed"}'
    for replica, total in ((replica_parts, 2), (other, 4)):
        for id in await house.client.start_many("shop.charge", [{"order": 1}] * 2):
            await house.client.result(id)
        assert (await measured(replica))[metric] == total
    failing = await house.client.start("shop.hopeless", {})
    await house.until("select 1 from execution where id = $1 and status = 'failed'", failing)
    figures = await measured(replica_parts)
    assert figures[metric] == 4, "what it does not know by itself was counted by the other"
    assert figures['executions_ended_total{action="shop.hopeless",status="failed"}'] == 1
    assert figures['execution_seconds_count{action="shop.charge"}'] == 4
    assert figures['execution_seconds_sum{action="shop.charge"}'] > 0
    assert figures['execution_seconds_bucket{action="shop.charge",le="+Inf"}'] == 4
    assert (await measured(other, anew=False))[metric] == 4, "nobody measures before it is due"


async def test_one_replica_measures_and_the_others_do_not_wait(house: Installation) -> None:
    await house.apply(*shop.ALL)
    session = (await house.parts()).database.session()
    async with session.transaction() as tx:
        assert await figures.due(tx) is not None
        async with (await house.parts()).database.session().transaction() as other:
            assert await figures.due(other) is None


async def test_labels_are_bounded(house: Installation) -> None:
    many = [figures.Ended(f"shop.a{n}", "completed", n) for n in range(installation_metrics.ACTIONS + 50)]
    collector = installation_metrics.InstallationCollector(
        figures.Figures(processes=[figures.Processes("executor", "active", 1)], ended=many)
    )
    [family] = [metric for metric in collector.collect() if metric.name == "penstock_executions_ended"]
    assert len(family.samples) == installation_metrics.ACTIONS + 1
    assert sum(sample.value for sample in family.samples) == sum(action.count for action in many)


async def test_executions_are_counted_by_the_labels_of_the_setting(house: Installation) -> None:
    await house.apply(*shop.ALL, pair)
    await house.start(*shop.ALL, metric_labels="customer, team")
    replica, other = [await house.parts("executor", metric_labels="customer,team") for _ in range(2)]
    ids = [
        await house.client.start(
            "shop.pair",
            labels={"customer": customer, "region": "eu"} | ({"team": "a"} if customer == "acme" else {}),
        )
        for customer in ("acme", "acme", "bolt")
    ]
    ids.append(await house.client.start("shop.hopeless", labels={"customer": "acme"}))
    ids.append(await house.client.start("shop.charge", {"order": 1}))
    await house.until("select from execution where parent is null having count(finished_at) = 5")
    seen = await measured(replica)
    ended = {name: value for name, value in seen.items() if name.startswith("labelled_executions_ended")}
    metric = 'labelled_executions_ended_total{key="%s",status="%s",value="%s"}'
    assert ended == {
        metric % ("customer", "completed", "acme"): 2,
        metric % ("customer", "failed", "acme"): 1,
        metric % ("customer", "completed", "bolt"): 1,
        metric % ("team", "completed", "a"): 2,
    }
    assert seen['labelled_execution_seconds_count{key="customer",value="acme"}'] == 3
    assert seen['labelled_execution_seconds_sum{key="customer",value="acme"}'] > 0
    await house.client.run("shop.pair", labels={"customer": "bolt"}, timeout=20)
    assert (await measured(other))[metric % ("customer", "completed", "bolt")] == 2
    plain = await house.parts("executor")
    assert not [name for name in await measured(plain) if name.startswith("labelled")]


def label_end(value: str, count: int, status: str = "completed") -> dict[str, object]:
    return {
        "key": "customer",
        "value": value,
        "status": status,
        "count": count,
        "bucket": 3,
        "seconds": 0.5 * count,
    }


def test_values_of_a_label_are_bounded_and_keep_their_figures() -> None:
    """A counter must not fall: a value that has figures of its own keeps them, however frequent later values are."""
    rows: list[figures.Labelled] = []
    for turn in range(3):
        rows = figures._labelled(
            rows, [label_end(f"c{n}", 10**turn) for n in range(80 * turn, 80 * turn + 80)]
        )
    rows = figures._labelled(
        rows, [label_end("c0", 1), label_end("c200", 7, "failed"), label_end("other", 2)]
    )
    assert len(rows) == figures.LABEL_VALUES + 1
    assert sum(sum(row.counts.values()) for row in rows) == 80 * 111 + 10
    of = figures.Figures(processes=[figures.Processes("executor", "active", 1)], labelled=rows)
    restored = figures._read(orjson.dumps(asdict(of)).decode())
    assert list(restored.labelled) == rows
    collector = installation_metrics.InstallationCollector(restored, label_keys=("customer",))
    families = {metric.name: metric for metric in collector.collect()}
    samples = {
        (s.labels["value"], s.labels["status"]): s.value
        for s in families["penstock_labelled_executions_ended"].samples
    }
    assert len(samples) == figures.LABEL_VALUES + 2
    assert (samples["c0", "completed"], samples["c99", "completed"]) == (2, 10)
    assert (samples["other", "failed"], samples["other", "completed"]) == (7, 60 * 10 + 80 * 100 + 2)
    counts = [
        s.value
        for s in families["penstock_labelled_execution_seconds"].samples
        if s.name.endswith("_count") and s.labels["value"] == "other"
    ]
    assert counts == [60 * 10 + 80 * 100 + 2 + 7]


@pytest.mark.parametrize("value", ["Customer", "a,b,c,d,e,f", "a,a", "a b"])
def test_wrong_labels_of_metrics_are_refused(value: str) -> None:
    with pytest.raises(ValidationError, match="metric_labels"):
        Settings(metric_labels=value)
