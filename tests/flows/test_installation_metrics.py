"""The metrics of the whole installation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock import Limit, action, ask, workflow
from penstock.service.assembly import Parts
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
