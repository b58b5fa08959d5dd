"""The cost of an execution, of a workflow of one task and of a further step in statements, commits and messages, beside the
figures of costs.json: the same on every machine, in every minute. Where a change moves them, that file says so:

    PENSTOCK_WRITE_COSTS=1 .venv/bin/python -m pytest -n 0 tests/flows/test_costs.py
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from penstock import action
from penstock.language.workflows import from_body
from penstock.store.outbox.outbox_queue import TAKE
from tests.flows.installation import Installation

FIGURES = Path(__file__).with_name("costs.json")
SILENT = 3600.0
"""Seconds between two turns of what goes on without any work, where that is a setting."""
TIMES = 8
"""What goes on beside the work only adds to it: the least is counted, once so many times in a row gave no less."""
STEPS = 6
BRACKETS = ("begin", "commit", "rollback", "set ", "reset ")
"""Around statements. What a connection has to be set to depends on who had it before: that is a matter of time, too."""
COUNTED = """
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as commits, (select last_value from outbox_id_seq) as messages
"""
OPEN = "exists (select from execution where finished_at is null)"
BUSY = {"rabbitmq": f"select {OPEN}", "postgres": f"select {OPEN} or exists (select from outbox)"}
"""On PostgreSQL a message is in the outbox until its consumer has settled it."""

Costs = dict[str, float]


@action(ref="cost.noop")
async def noop() -> int:
    return 1


def chained(steps: int) -> Any:
    return from_body(
        {
            "ref": f"cost.chain_{steps}",
            "tasks": [
                {"name": f"step{n}", "action": "cost.noop", "needs": [f"step{n - 1}"] if n else []}
                for n in range(steps)
            ],
        }
    )


@dataclass
class Asked:
    """The statements that sessions send to PostgreSQL for the sake of some work. The loops, and looks for messages, are not
    counted, as their number is a matter of time."""

    statements: int = 0
    deletes: int = 0
    """Of published messages: one a second at the most, however many there are, and so no part of what one costs."""
    deleting: int = 0
    """Of these, how many are under way: whether they have committed nobody knows."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    counts = Asked()

    def counting(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(self: asyncpg.Connection, sql: str, *args: Any, **options: Any) -> Any:
            task = asyncio.current_task()
            name = task.get_name() if task else ""
            if name == "outbox.delete":
                counts.deletes += 1
                counts.deleting += 1
                try:
                    return await method(self, sql, *args, **options)
                finally:
                    counts.deleting -= 1
            if not name.startswith("loop ") and sql != TAKE and not sql.lower().startswith(BRACKETS):
                counts.statements += 1
            return await method(self, sql, *args, **options)

        return counted

    for name in ("fetch", "execute"):
        monkeypatch.setattr(asyncpg.Connection, name, counting(getattr(asyncpg.Connection, name)))
    return counts


async def measured(house: Installation, database: str, asked: Asked, busy: str) -> dict[str, Costs]:
    watching = await asyncpg.connect(database)

    async def read() -> Costs:
        while True:
            deletes, under_way = asked.deletes, asked.deleting
            row = await watching.fetchrow(COUNTED)  # not counted: neither `fetch` nor `execute`
            assert row is not None
            if not under_way and asked.deletes == deletes:
                commits, messages = row
                return {"statements": asked.statements, "commits": commits - deletes, "messages": messages}
            await asyncio.sleep(0.01)

    async def once(ref: str) -> Costs:
        earlier = await read()
        await house.client.start(ref, {})
        async with asyncio.timeout(30):
            while await watching.fetchval(busy):
                await asyncio.sleep(0.02)
        later = await read()
        return {name: later[name] - earlier[name] for name in later}

    async def least(ref: str) -> Costs:
        await once(ref)  # plans and definitions are read the first time
        costs_now, in_vain = await once(ref), 0
        while in_vain < TIMES:
            costs = await once(ref)
            less = {name: min(costs[name], costs_now[name]) for name in costs_now}
            in_vain = in_vain + 1 if less == costs_now else 0
            costs_now = less
        return costs_now

    execution, short, long = [
        await least(ref) for ref in ("cost.noop", "cost.chain_1", f"cost.chain_{STEPS}")
    ]
    await watching.close()
    step = {name: (long[name] - short[name]) / (STEPS - 1) for name in long}
    return {"an execution": execution, "a workflow of one task": short, "a step of a workflow": step}


async def test_an_execution_and_a_step_cost_the_documented_amounts(
    make_house: Callable[..., Installation], asked: Asked, database: str, transport: str
) -> None:
    silent = dict.fromkeys(("sweep_interval", "relay_interval", "relay_age", "restage_age"), SILENT)
    async with make_house(
        heartbeat_interval=SILENT, stale_threshold=3 * SILENT, poll_interval=SILENT, **silent
    ) as house:
        # Work that a broker has no queue for yet is published again by a relay, which is silent here.
        await (await house.parts()).transport.declare("work.default")
        await house.start(noop, chained(1), chained(STEPS))
        found = await measured(house, database, asked, BUSY[transport])
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if os.environ.get("PENSTOCK_WRITE_COSTS"):
        found = {
            subject: {name: round(count) for name, count in costs.items()} for subject, costs in found.items()
        }
        FIGURES.write_text(json.dumps({**figures, transport: found}, indent=2, sort_keys=True) + "\n")
        return
    for subject, costs in figures[transport].items():
        # A fraction comes of a commit that was under way when it was counted, in one of many steps; on a busy machine one may
        # be another's.
        assert all(costs[name] - 1.5 < found[subject][name] < costs[name] + 0.5 for name in costs), (
            f"{subject} on {transport}: {found[subject]} and not {costs}; see the head of this file"
        )
