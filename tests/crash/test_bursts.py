"""kill -9 of executors while bursts of events are matched and closed: one execution each, with the last payload. The same for
bursts of starts. Their connections are also cut around their commits.

`PENSTOCK_BURST_EVENTS` (of starts too) and `PENSTOCK_BURST_KEYS` make it larger, `PENSTOCK_BURST_KILL_S` is the mean time
between two kills; `-s` prints its rates.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from datetime import datetime
from pathlib import Path
from uuid import UUID

import orjson
import pytest

from penstock import Rule, Trigger, action
from tests.crash.processes import Fleet
from tests.flows.installation import Installation
from tests.penstock.store.events.test_bursts_model import model

pytestmark = pytest.mark.either_transport

EVENTS = int(os.environ.get("PENSTOCK_BURST_EVENTS", "3000"))
KEYS = int(os.environ.get("PENSTOCK_BURST_KEYS", "60"))
KILL_S = float(os.environ.get("PENSTOCK_BURST_KILL_S", "0.75"))
START_QUIET_S = 0.5
PAUSES_S = (0, 0, 0, 0.1, 0.3, 0.49, 0.51, 0.8)
WAVES = 4
QUIET_S = 2.0
BESIDE = 200
"""The number of events that are published at once."""

edited = Trigger("docs.edited", schema={"key": "string", "n": "integer"})


@action(pack="docs")
async def index(key: str, n: int) -> None: ...


rule = Rule(
    "docs.on_edit",
    trigger=edited,
    action=index,
    params={"key": "{{ payload.key }}", "n": "{{ payload.n }}"},
    debounce=QUIET_S,
    by="payload.key",
)


async def test_each_burst_starts_once_while_executors_are_killed(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(edited, index, rule)
    dice = random.Random(11)
    done = asyncio.Event()

    async def kill(fleet: Fleet) -> None:
        while not done.is_set():
            await asyncio.sleep(dice.uniform(0.4, 1.6) * KILL_S)
            fleet.kill(dice.choice(fleet.alive))
            fleet.executor()

    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        fleet.executor()
        fleet.executor()
        killing = asyncio.create_task(kill(fleet))
        n = 0
        published = 0.0
        for _ in range(WAVES):
            began = time.monotonic()
            for _ in range(EVENTS // WAVES // BESIDE + 1):
                payloads = [{"key": str(dice.randrange(KEYS)), "n": n + i} for i in range(BESIDE)]
                n += BESIDE
                await asyncio.gather(*(house.client.publish("docs.edited", payload) for payload in payloads))
            published += time.monotonic() - began
            await asyncio.sleep(2 * QUIET_S)
        began = time.monotonic()
        await house.until(
            "select 1 where not exists (select from unmatched) and not exists (select from burst_key)",
            seconds=300 + EVENTS / 100,
        )
        done.set()
        await killing
        print(
            f"{n} events at {n / published:.0f}/s, {fleet.killed} kills, {time.monotonic() - began:.1f} s behind"
        )
    rows = await house.rows("select created_at, id, payload::text as payload from event")
    bodies = [(row["created_at"], row["id"], orjson.loads(row["payload"])) for row in rows]
    stored = [(at, id, body["key"], body["n"]) for at, id, body in bodies]
    started = await house.rows("select params::text as params from payload")
    outcomes = sorted([body["key"], body["n"]] for body in (orjson.loads(row["params"]) for row in started))
    assert len(stored) == n
    assert fleet.killed > 3
    assert outcomes == model(stored, QUIET_S, None, "last")
    print(f"{len(outcomes)} bursts")
    await house.sound()


CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and query like '%from submit_executions(%'
"""
STARTS = """
select h.ready_at - make_interval(secs => $1) as at, p.execution_id as id, p.options #>> '{debounce,key}' as key
from payload p join history h on h.execution_id = p.execution_id and h.old is null
union all
select j.at, j.execution_id, p.options #>> '{debounce,key}' from joined_start j join payload p on p.execution_id = j.execution_id
order by at
"""
NOT_DUE = "select 1 where not exists (select from execution where status = 'requested')"


async def test_starts_of_a_burst_have_one_execution_over_crashes(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    """Each key has its starts one after another, so the order of their stored instants is that of their numbers. The model of the
    bursts of events says which of them have one execution."""
    await house.apply(index)
    dice = random.Random(12)
    done = asyncio.Event()
    answers: dict[str, list[UUID]] = {str(key): [] for key in range(KEYS)}
    cuts = 0

    async def crash(fleet: Fleet) -> None:
        nonlocal cuts
        while not done.is_set():
            await asyncio.sleep(dice.uniform(0.4, 1.6) * KILL_S)
            fleet.kill(dice.choice(fleet.alive))
            fleet.executor()
            cuts += len(await house.rows(CUT))

    async def start(key: str) -> None:
        for n in range(EVENTS // KEYS):
            id = await house.client.start(
                "docs.index", {"key": key, "n": n}, debounce=START_QUIET_S, debounce_key=key
            )
            answers[key].append(id)
            await asyncio.sleep(dice.choice(PAUSES_S))

    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        fleet.executor()
        fleet.executor()
        crashing = asyncio.create_task(crash(fleet))
        began = time.monotonic()
        await asyncio.gather(*(start(key) for key in answers))
        elapsed_s = time.monotonic() - began
        await house.until(NOT_DUE, seconds=120)
        done.set()
        await crashing
    stored: list[tuple[datetime, UUID, str, int]] = []
    executions: dict[str, list[UUID]] = {key: [] for key in answers}
    for at, id, key in await house.rows(STARTS, START_QUIET_S):
        stored.append((at, id, key, len(executions[key])))
        executions[key].append(id)
    assert executions == answers
    rows = await house.rows("select params::text as params from payload")
    outcomes = sorted([body["key"], body["n"]] for body in (orjson.loads(row["params"]) for row in rows))
    assert outcomes == model(stored, START_QUIET_S, None, "last")
    print(
        f"{len(stored)} starts at {len(stored) / elapsed_s:.0f}/s, {len(outcomes)} bursts, {fleet.killed} kills, {cuts} cuts"
    )
    assert fleet.killed > 3
    assert cuts > 3
    await house.sound()
