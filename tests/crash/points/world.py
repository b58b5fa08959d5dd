"""The world of a scenario: a whole installation in one process, and the rows that it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from penstock.client.client import Client
from penstock.service.assembly import Parts, Stop
from penstock.store.session.database import Row, Session, is_transient

T = TypeVar("T")
SETTLED = """
select 1 where not exists (select from execution where finished_at is null)
    and not exists (select from slot) and not exists (select from lane) and not exists (select from claim)
    and not exists (select from outbox where queue not like 'work.nowhere')
"""
"""Nothing is open, and nothing is left to be sent but what nobody serves."""

ENDED = """
select 1 where (select count(*) from execution where id = any($1::uuid[]) and finished_at is not null)
    + (select count(*) from archive where id = any($1::uuid[])) = cardinality($1::uuid[])
"""


@dataclass
class World:
    client: Client
    parts: Parts
    session: Session
    broker: str | None
    first: bool
    """In the process that is to be killed, not in the one that comes after it."""
    stop: Stop = field(default_factory=Stop)
    services: list[asyncio.Task[Any]] = field(default_factory=list)

    async def rows(self, sql: str, *args: Any) -> list[Row]:
        return await again(lambda: self.session.fetch(sql, *args))

    async def value(self, sql: str, *args: Any) -> Any:
        return (await self.rows(sql, *args))[0][0]

    async def until(self, sql: str, *args: Any) -> list[Row]:
        while not (rows := await self.rows(sql, *args)):
            await asyncio.sleep(0.01)
        return rows

    async def start(self, ref: str, key: str, params: dict[str, Any] | None = None, **more: Any) -> UUID:
        return await again(lambda: self.client.start(ref, params or {}, key=key, **more))

    async def ended(self, *ids: UUID) -> None:
        await self.until(ENDED, ids)

    async def reached(self, id: UUID, *statuses: str) -> None:
        await self.until(
            f"{ENDED} or exists (select from execution where id = any($1) and status = any($2))",
            [id],
            statuses,
        )

    async def results(self, ref: str) -> list[Any]:
        sql = """select r.result #>> '{}' from execution e join namespace n on n.id = e.namespace_id
            join result r on r.execution_id = e.id where n.action = $1 order by 1"""
        return [row[0] for row in await self.rows(sql, ref)]


async def again(call: Callable[[], Awaitable[T]]) -> T:
    """Retry as callers do: after an error of the moment, under the same key."""
    while True:
        try:
            return await call()
        except Exception as error:
            if not is_transient(error):
                raise
            await asyncio.sleep(0.02)
