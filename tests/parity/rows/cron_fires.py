"""C3 to C6: fires that are due, missed, lost, and never doubled."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

from tests.parity.host import Host
from tests.parity.site import Site


async def c03_one_execution_for_each_fire(host: Host) -> str:
    """Schedules and fires in tables; unique (schedule, fire time); fire, execution and next time in one transaction."""
    site = await host.shared()
    await site.schedule("cron.c03", "cron.tell", every="1s")
    await site.until(lambda: _count(site, "cron.c03", 5), "five fires")
    await site.client.schedules.disable("cron.c03")
    fires = await site.client.schedules.history("cron.c03")
    assert len({fire.due_at for fire in fires}) == len(fires)
    assert len({fire.execution_id for fire in fires}) == len(fires), "two fires share an execution"
    ran = await site.value("select count(*) from payload where origin ->> 'schedule' = 'cron.c03'")
    assert ran in (len(fires), 0), f"{ran} executions of {len(fires)} fires"
    error = await site.refused("insert into fire select * from fire where schedule = 'cron.c03' limit 1")
    assert error == "UniqueViolationError", f"PostgreSQL refused a second fire with {error}"
    atomic = await site.sql(
        "select f.due_at from fire f left join execution e on e.id = f.execution_id "
        "where f.schedule = 'cron.c03' and (e.id is null or e.xmin = '0')"
    )
    assert not atomic, f"fires without an execution: {atomic}"
    same = await site.value("select count(*) from fire where schedule = 'cron.c03' and status = 'created'")
    return f"{len(fires)} fires of every second, {same} executions, one each; a second fire of the same instant: {error}"


async def c04_missed_fires(host: Host) -> str:
    """Missed fires: execute / skip / execute with delay; grace; catch-up all or one with a cap; spread, jitter."""
    async with host.site(executors=1, workers=1) as site:
        ways: dict[str, list[str]] = {
            "execute": ["--missed", "execute"],
            "skip": ["--missed", "skip"],
            "delay": ["--missed", "delay", "--delay", "2s"],
            "all": ["--catch-up", "all"],
            "capped": ["--catch-up", "all", "--at-most", "2"],
            "spread": ["--catch-up", "all", "--spread", "4s"],
            "graced": [],
        }
        await asyncio.gather(
            *(
                site.schedule(
                    f"cron.c04_{name}",
                    "cron.tell",
                    *words,
                    every="1s",
                    grace="60s" if name == "graced" else "1s",
                )
                for name, words in ways.items()
            )
        )
        for name in ways:
            await site.until(partial(_count, site, f"cron.c04_{name}", 1), f"{name} to fire")
        [executor] = [s for s in site.services if s.name == "executor-1"]
        executor.send(signal.SIGSTOP)
        await asyncio.sleep(7)
        executor.send(signal.SIGCONT)
        for name in ways:
            status = "due" if name == "graced" else "missed"
            await site.until(partial(_late, site, name, status), f"{name}: fires of the time away")
        await asyncio.gather(*(site.client.schedules.disable(f"cron.c04_{name}") for name in ways))
        found = {}
        for name in ways:
            fires = [
                fire
                for fire in await site.client.schedules.history(f"cron.c04_{name}")
                if fire.kind == "missed"
            ]
            found[name] = Counter(fire.status for fire in fires)
            if name in ("delay", "spread"):
                ids = [fire.execution_id for fire in fires if fire.execution_id]
                rows = await site.sql("select not_before, created_at from execution where id = any($1)", ids)
                later = [
                    (row["not_before"] - row["created_at"]).total_seconds()
                    for row in rows
                    if row["not_before"]
                ]
                assert later, f"{name}: no missed fire was put off"
                assert max(later) <= 4.5, f"{name}: put off by {later}"
        assert not found["skip"]["created"], f"skip: {found['skip']}"
        assert found["execute"]["created"] == 1, f"one stands for all: {found['execute']}"
        assert found["all"]["created"] >= 4, f"all: {found['all']}"
        assert found["capped"]["created"] == 2, f"at most two: {found['capped']}"
        assert not found["graced"], f"within the grace nothing is missed: {found['graced']}"
    summary = "; ".join(f"{name} {dict(counts)}" for name, counts in found.items())
    return f"an executor was away for 7 s of fires every second: {summary}"


async def c05_replicas(host: Host) -> str:
    """Several replicas: no double fire, no leader needed; takes over within one tick of a crash."""
    async with host.site(executors=3, workers=1) as site:
        await site.schedule("cron.c05", "cron.tell", every="1s", catch_up="all")
        await site.until(lambda: _count(site, "cron.c05", 3), "three fires")
        for name in ("executor-1", "executor-2"):
            count = len(await site.client.schedules.history("cron.c05"))
            next(s for s in site.services if s.name == name).kill()
            await site.until(partial(_count, site, "cron.c05", count + 3), "the others to fire")
        await site.client.schedules.disable("cron.c05")
        fires = sorted(await site.client.schedules.history("cron.c05", 1000), key=lambda fire: fire.due_at)
        gaps = {(b.due_at - a.due_at).total_seconds() for a, b in pairwise(fires)}
        assert gaps == {1.0}, f"fires are apart by {gaps} s"
        assert len({fire.execution_id for fire in fires}) == len(fires)
        lag = max(fire.lag for fire in fires)
        makers = Counter(fire.made_by for fire in fires)
        assert len(makers) >= 2, f"all fires were made by {makers}"
        assert lag < 15, f"after a crash a fire came {lag:.1f} s late"
    return (
        f"{len(fires)} fires by {len(makers)} replicas, two of which were killed: none doubled, none missing, "
        f"the latest {lag:.1f} s late"
    )


async def c06_lost_executions(host: Host) -> str:
    """Recovery of fires with a lost execution; bounded; audit of every fire with status and error."""
    async with host.site(executors=1, workers=1) as site:
        await site.schedule("cron.c06", "cron.work", param="seconds=600", at="2100-01-01T00:00")
        await site.client.schedules.run("cron.c06")
        replaced = []
        for number in range(4):
            [fire] = await site.client.schedules.history("cron.c06")
            assert fire.execution_id
            await site.comes_to(fire.execution_id, "running")
            replaced.append(fire.execution_id)
            # What a partial restore leaves behind: the fire is there, its execution is not.
            for table, column in (("execution", "id"), ("live", "execution_id"), ("payload", "execution_id")):
                await site.sql(f"delete from {table} where {column} = $1", fire.execution_id)
            if number < 3:
                await site.until(
                    partial(_replaced, site, fire.execution_id),
                    "the lost execution to be replaced",
                    90,
                )
        await site.until(partial(_given_up, site), "the fire to say that it was lost too often")
        [fire] = await site.client.schedules.history("cron.c06")
        assert fire.recoveries == 3, f"{fire.recoveries} recoveries"
        assert fire.execution_id == replaced[-1], "it was replaced a fourth time"
        history = (await site.command("schedule", "history", "cron.c06", "--json")).one
    return (
        f"lost four times, replaced three times and no more; the fire's record: recoveries {fire.recoveries}, "
        f"outcome {history['outcome']}, error {history['error']}"
    )


# -- looking ---------------------------------------------------------------------------------------------------------


async def _count(site: Site, ref: str, count: int) -> bool:
    return len(await site.client.schedules.history(ref, 1000)) >= count


async def _late(site: Site, name: str, kind: str) -> Any:
    return [
        fire
        for fire in await site.client.schedules.history(f"cron.c04_{name}")
        if fire.kind == kind and fire.lag > 2
    ]


async def _given_up(site: Site) -> str | None:
    [fire] = await site.client.schedules.history("cron.c06")
    return fire.error


async def _replaced(site: Site, id: Any) -> bool:
    [fire] = await site.client.schedules.history("cron.c06")
    return bool(fire.execution_id != id)
