"""The schedules `clock.a` and `clock.b`, of an action that a limit covers. Tests write their rows themselves and see
the effect of a function on one, and not on the other."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock import Limit
from penstock.language.terms.ids import new_id
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House, every_minute

A, B = "clock.a", "clock.b"
DAY = "timestamptz '2026-01-05 00:00+00'"
BASE = "(" + DAY + " + {} * interval '1 minute')"
"""Due instants are minutes of one day, by number."""
NUMBER = f"(extract(epoch from due_at - {DAY}) / 60)::int"


class Rows:
    def __init__(self, house: House) -> None:
        self.house = house

    @classmethod
    async def prepare(cls, house: House, *refs: str) -> Rows:
        limit = Limit(100, ref="clock.l", scope="shop.charge")
        await house.apply(*shop.ALL, limit, *(every_minute(ref) for ref in refs or (A, B)))
        return cls(house)

    async def sql(self, statement: str, *values: Any) -> list[Any]:
        return await self.house.rows(statement, *values)

    async def fire(
        self,
        ref: str,
        n: int,
        status: str = "created",
        *,
        execution: UUID | None = None,
        opened: bool = False,
    ) -> UUID:
        id = execution or new_id()
        await self.sql(
            "insert into fire (schedule, due_at, status, kind, definition_id, execution_id) "
            f"select $1, {BASE.format('$2::int')}, $3, 'due', definition_id, $4 from schedule where ref = $1",
            *(ref, n, status, id),
        )
        if opened:
            await self.open(ref, n, id)
        return id

    async def open(self, ref: str, n: int, id: UUID) -> None:
        await self.sql(
            f"insert into open_fire (execution_id, schedule, due_at) values ($3, $1, {BASE.format('$2::int')})",
            *(ref, n, id),
        )

    async def waits(
        self, ref: str, n: int, *, replaces: bool = False, status: str = "queued", later: int | None = None
    ) -> UUID:
        """A fire that waits for the run before it. `later`: seconds from now before which it does not start."""
        id = await self.fire(ref, n, status)
        await self.sql(
            "insert into waiting_fire (schedule, due_at, execution_id, replaces, namespace_id, definition_id, not_before, params)"
            f" select $1, {BASE.format('$2::int')}, $3, $4, s.namespace_id, c.definition_id,"
            " clock_timestamp() + make_interval(secs => $5), '{\"order\": 1}'"
            " from schedule s, catalog c where s.ref = $1 and c.ref = 'shop.charge'",
            *(ref, n, id, replaces, later),
        )
        return id

    async def run(self, status: str, *, last_of: str | None = None, id: UUID | None = None) -> UUID:
        """An execution; the last one of a schedule, if that is named."""
        id = id or new_id()
        await self.sql(
            "insert into execution (id, status, namespace_id, definition_id, attempt, claim, finished_at)"
            " select $1, $2, s.namespace_id, c.definition_id, 1, $1, case when $2 in ('completed', 'failed') then now() end"
            " from schedule s, catalog c where s.ref = $3 and c.ref = 'shop.charge'",
            *(id, status, last_of or A),
        )
        if last_of is not None:
            await self.sql("update schedule set last_execution = $2 where ref = $1", last_of, id)
        return id

    async def fires(self) -> dict[tuple[str, int], str]:
        return {
            (row["schedule"], row["n"]): row["status"]
            for row in await self.sql(f"select schedule, {NUMBER} as n, status from fire")
        }

    async def numbers(self, table: str) -> set[tuple[str, int]]:
        """Return the numbers of the open or waiting fires."""
        return {
            (row["schedule"], row["n"])
            for row in await self.sql(f"select schedule, {NUMBER} as n from {table}")
        }

    async def schedule(self, ref: str) -> dict[str, Any]:
        [row] = await self.sql(
            f"select error, last_execution, (extract(epoch from last_due - {DAY}) / 60)::int as last"
            " from schedule where ref = $1",
            ref,
        )
        return dict(row)


def instants(numbers: str) -> str:
    """An expression of SQL: the instants of the numbers that `numbers`, an array of SQL, has."""
    return (
        f"array(select {BASE.format('n')} from unnest({numbers}::int[]) with ordinality u (n, o) order by o)"
    )
