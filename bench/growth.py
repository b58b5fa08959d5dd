"""The cost of one event, from its arrival to the end of the execution that it starts, while all other tables grow.

    python -m bench.growth                  # history to 10 million executions, waiting work to 1 million: half an hour
    python -m bench.growth --scale 0.01     # a hundredth of it: a minute

Counts statements, buffers and bytes of write-ahead log of PostgreSQL, which do not depend on how busy the machine is. Each
line is a database of its own, that holds as much of one thing as it says, and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from bench.backlog import Meter, prepared
from bench.full_database import fill
from bench.servers import Postgres
from penstock import Limit, Rule, Schedule, Trigger
from penstock.store.events import events
from penstock.store.session.database import Database
from penstock_executor.handlers import event_created
from tests.penstock.store.admission.desk import Desk, send

EVENTS, BATCH = 500, 25
HAPPENED = Trigger("bench.happened")
RULE = Rule(
    "bench.send", trigger=HAPPENED, when="payload.n >= 0", action=send, params={"customer": "{{ payload.n }}"}
)
EACH = Limit(2, ref="shop.each", scope="shop.charge", by="customer")

OPEN = """
with made as (
    insert into execution (id, status, namespace_id, definition_id, not_before, ready_at)
    select gen_random_uuid(), 'requested', n.id, (select min(id) from definition where kind = 'action'),
        now() + interval '1 day', now() + interval '1 day'
    from generate_series(1, $1) cross join (select id from namespace where action = 'shop.refund') n returning id, not_before
), given as (insert into payload (execution_id, params) select id, '{}' from made
), alive as (insert into live (execution_id) select id from made)
insert into timer (due_at, kind, execution_id) select not_before, 'ready', id from made
"""
"""Executions that wait for an instant."""
STAND = """
with made as (
    insert into execution (id, status, namespace_id, definition_id)
    select gen_random_uuid(), 'queued', n.id, (select min(id) from definition where kind = 'action')
    from generate_series(1, $1) cross join (select id from namespace where action = 'shop.refund') n returning id
), given as (insert into payload (execution_id, params) select id, '{}' from made
), line as (
    insert into lane (id, namespace_id, keys, gate_kind, gate_limit, gate_group, rank, turn, ready_at, execution_id)
    select gen_random_uuid(), (select id from namespace where action = 'shop.refund'), '{}', 'limit',
        (select min(id) from concurrency_limit), g::text, 0, 0, now(), (select id from made limit 1)
    from generate_series(1, greatest(1, $1 / 10)) g returning id
), lines as (select array_agg(id) as ids from line)
insert into waiter (lane, rank, turn, ready_at, execution_id)
select ids[1 + n % cardinality(ids)], 0, 0, now(), id from (select id, row_number() over () as n from made) m, lines
"""
"""Executions that stand in lines of ten before the keys of a limit."""
ROUTES = """
insert into namespace (name, action, kind, queue)
select 'public::other::a' || n, 'other.a' || n, 'action', 'work.r' || n from generate_series(1, $1) n
"""
WORKERS = """
insert into process (id, kind, name, routes, actions, concurrency)
select gen_random_uuid(), 'worker', 'w' || n, array['r' || n], array['other.a' || n], 32 from generate_series(1, $1) n
"""
FIRES = """
insert into schedule (ref, definition_id, namespace_id, since, next_due)
select 'other.s' || n, definition_id, namespace_id, now(), now() + interval '1 day' * (1 + n % 365)
from generate_series(1, $1) n cross join (select * from schedule limit 1) s
"""


@dataclass(frozen=True)
class Spent:
    """The cost of one event with its execution and its end."""

    statements: float
    buffers: float
    wal: float


class Bench:
    """A database, and what there is to be done on it."""

    def __init__(self, home: Database, connection: asyncpg.Connection, url: str) -> None:
        self.desk, self.connection, self.url = Desk(home), connection, url

    async def work(self) -> None:
        """Events are stored and matched, and what they start is claimed and ends."""
        for first in range(0, EVENTS, BATCH):
            new_events = [
                events.NewEvent("bench.happened", "public", f'{{"n": {n}}}', "bench")
                for n in range(first, first + BATCH)
            ]
            async with self.desk.session.transaction() as tx:
                answer = await events.store(tx, new_events, matched=True)
                await event_created.match(tx, await events.read(tx, answer.stored))
            ids = [id for message in tx.staged if message.queue.startswith("work.") for id in message.ids]
            assert len(ids) == BATCH, tx.staged
            await self.desk.claim(ids)
            await self.desk.finish(ids)

    async def spent(self) -> Spent:
        meter = Meter(self.connection)
        await meter.reset()
        log_before = await self._log()
        await self.work()
        cost, log = await meter.read(), await self._log() - log_before
        return Spent(cost.statements / EVENTS, cost.buffers / EVENTS, log / EVENTS)

    async def _log(self) -> int:
        return int(
            await self.connection.fetchval(
                "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
            )
        )


Grow = Callable[[Bench, int], Awaitable[Any]]


def rows(sql: str) -> Grow:
    """Insert rows in parts, each in a transaction of its own, since real transactions do not write a million rows."""

    async def grow(bench: Bench, count: int) -> None:
        for first in range(0, count, 100_000):
            await bench.connection.execute(sql, min(100_000, count - first))

    return grow


async def rules(bench: Bench, count: int) -> None:
    for first in range(0, count, 1000):
        triggers = [Trigger(f"other.t{n}") for n in range(first, min(first + 1000, count))]
        await bench.desk.apply(
            *triggers, send, *(Rule(f"other.r{t.ref[7:]}", trigger=t, action=send) for t in triggers)
        )


async def keys(bench: Bench, count: int) -> None:
    """Limits' keys that are held, each by an execution that is admitted."""
    for n in range(0, count, 50):
        ids = [id for k in range(50) for id in await bench.desk.request(1, "shop.charge", customer=n + k)]
        await bench.desk.admit(ids)


async def schedules(bench: Bench, count: int) -> None:
    await bench.desk.apply(send, Schedule("other.first", action=send, cron="0 0 1 1 *"))
    if count:
        await bench.connection.execute(FIRES, count)


async def history(bench: Bench, count: int) -> None:
    if count:
        await fill(bench.url, count)


GROWN: dict[str, tuple[Grow, tuple[int, ...]]] = {
    "executions in the archive, with four moves each": (history, (0, 1_000_000, 10_000_000)),
    "executions that wait for an instant": (rows(OPEN), (0, 100_000, 1_000_000)),
    "executions in line before limits, ten a key": (rows(STAND), (0, 100_000, 1_000_000)),
    "keys of limits that are held": (keys, (0, 10_000)),
    "rules of other triggers": (rules, (0, 1_000, 10_000)),
    "schedules": (schedules, (0, 10_000, 100_000)),
    "routes of other actions": (rows(ROUTES), (0, 100, 1_000)),
    "workers of other routes": (rows(WORKERS), (0, 100, 1_000)),
}


async def measure(server: Postgres, number: int, grow: Grow, count: int) -> Spent:
    name = f"growth_{number}_{count}"
    home, connection = await prepared(server, name)
    bench = Bench(home, connection, server.url(name))
    await bench.desk.open(EACH)
    await bench.desk.apply(send, HAPPENED, RULE)
    await grow(bench, count)
    await connection.execute("vacuum analyze")
    for _ in range(3):  # plans are made, caches are warm, and tables have grown out of their first pages
        await bench.work()
    spent = await bench.spent()
    await connection.close()
    await home.close()
    await server.execute(f"drop database {name} with (force)")
    return spent


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", help="what has this in its name")
    options = parser.parse_args()
    # Without full pages the log does not depend on when the last checkpoint was.
    server = await asyncio.to_thread(
        Postgres,
        **{
            "shared_preload_libraries": "pg_stat_statements",
            "pg_stat_statements.track": "all",
            "full_page_writes": "off",
        },
    )
    print("| what there is | how many | statements | buffers | bytes of log |\n|---|---|---|---|---|")
    try:
        for number, (subject, (grow, sizes)) in enumerate(GROWN.items()):
            for size in sizes if options.only in subject else ():
                count = round(size * options.scale)
                spent = await measure(server, number, grow, count)
                print(
                    f"| {subject} | {count:,} | {spent.statements:.1f} | {spent.buffers:.0f} | {spent.wal:,.0f} |",
                    flush=True,
                )
    finally:
        await asyncio.to_thread(server.close)


if __name__ == "__main__":
    asyncio.run(main())
