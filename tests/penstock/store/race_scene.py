"""The scene of races on one action: a database, connections, and their statements."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from penstock.store.session.database import Database, Row, Session

CLAIM = (
    "select one.* from claim_executions($1, $2, $3::uuid[], 100, 'work.default', $4::integer[], '{}'::integer[]), "
    "unnest(claimed) one"
)
FINISH = (
    "select moved from finish_attempts($1, $2::uuid[], $3::integer[], $4::text[], null, null, $5::float8[], null, null, "
    "'{}'::uuid[], '{}'::uuid[])"
)
SCHEDULE = "select * from unnest(schedule_executions($1::uuid[]))"
REAP = "select * from reap_process(make_interval(secs => $1), interval '1 day', interval '3 s')"
IN_PLACE = "select id, execution_id from open_parents_at_once($1::uuid[], '{}')"
CANCEL = "select * from cancel_executions($1::uuid[], 'why')"


class Scene:
    """A database with one action, and connections to race on."""

    def __init__(self, home: Database) -> None:
        self.database = home
        self.one = home.session()
        self.other = home.session()
        self.watcher = home.session()
        self.definition = 0
        self.namespace = 0

    async def prepare(self) -> None:
        rows = await self.one.fetch(
            "insert into definition (kind, ref, digest, body) values ('action', 'a.b', 'x', '{}') returning id"
        )
        self.definition = rows[0][0]
        rows = await self.one.fetch(
            "insert into namespace (name, action, kind, queue) "
            "values ('public::a::b', 'a.b', 'action', 'work.default') returning id"
        )
        self.namespace = rows[0][0]

    async def requested(self, count: int) -> list[UUID]:
        """Executions that had to wait for an instant, which has come: an executor schedules them."""
        ids = [new_id() for _ in range(count)]
        await self.one.fetch(
            "select * from request_executions($1::uuid[], $2::integer[], $3::integer[], $4::text[], null, null, null, "
            "array_fill(clock_timestamp(), array[cardinality($1)]), null, null, null, false)",
            ids,
            [self.namespace] * count,
            [self.definition] * count,
            ["{}"] * count,
        )
        await self.one.fetch("delete from timer where execution_id = any ($1::uuid[])", ids)
        await self.one.fetch("select * from unnest(stage('execution.requested', $1::uuid[], 50))", ids)
        return ids

    async def blocked(self) -> None:
        """Wait until a connection waits for a lock."""
        async with asyncio.timeout(10):
            while not await self.watcher.fetch(
                "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            ):
                await asyncio.sleep(0.005)

    async def race(
        self, first: Session, second: Session, sql: str, *args: Any
    ) -> tuple[list[Row], list[Row]]:
        """Run a statement in an open transaction, the same on another connection until it waits, then commit."""
        async with first.transaction() as tx:
            won = await tx.fetch(sql, *args)
            task = asyncio.create_task(second.fetch(sql, *args))
            await self.blocked()
        return won, await task

    async def statuses(self) -> set[str]:
        return {row[0] for row in await self.watcher.fetch("select distinct status from execution")}


async def finish(session: Session, worker: UUID, ids: list[UUID], attempt: int, status: str) -> list[UUID]:
    """Say of each that this attempt of it ended so; gives those that it moved."""
    count = len(ids)
    [[moved]] = await session.fetch(FINISH, worker, ids, [attempt] * count, [status] * count, [0.0] * count)
    return sorted(moved)


def ids_of(messages: list[Row], queue: str) -> list[UUID]:
    return [id for message in messages if message["queue"] == queue for id in message["ids"]]
