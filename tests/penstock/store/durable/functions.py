"""Durable functions that stand as a test says: what they have recorded, and which of them sleep."""

from __future__ import annotations

from typing import Any

from tests.penstock.store.race_scene import ids_of
from tests.penstock.store.stand import Stand

SOON = 10
"""Seconds after which a statement waits for what it should pass over."""


class Functions(Stand):
    """Executions are of a durable function; `plain` is the definition of an action that is none."""

    plain = 0

    async def prepare(self) -> Functions:
        await super().prepare()
        self.plain = self.definition
        [[self.definition]] = await self.sql(
            "insert into definition (kind, ref, digest, body)"
            " values ('action', 'a.d', 'x', '{\"durable\": {}}') returning id"
        )
        return self

    async def step(
        self, run: str, name: str, status: str = "completed", ordinal: int = 1, **columns: Any
    ) -> None:
        columns = {"place": 1, "kind": "step", "attempt": 1} | columns
        columns |= {"execution_id": self.ids[run], "name": name, "ordinal": ordinal, "status": status}
        result = columns.pop("result", None)
        places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
        await self.sql(f"insert into step ({', '.join(columns)}) values ({places})", *columns.values())
        await self.sql(
            "update step set result = $4::text::json where (execution_id, name, ordinal) = ($1, $2, $3)",
            *(self.ids[run], name, ordinal, result),
        )

    async def steps(self, run: str) -> dict[tuple[str, int], tuple[str, str | None]]:
        rows = await self.sql(
            "select name, ordinal, status, result::text from step where execution_id = $1", self.ids[run]
        )
        return {(row["name"], row["ordinal"]): (row["status"], row["result"]) for row in rows}

    async def suspended(self, *names: str) -> None:
        for name in names:
            await self.sql("insert into suspended (execution_id, until) values ($1, now())", self.ids[name])

    async def asleep(self) -> set[str]:
        return self.names([row[0] for row in await self.sql("select execution_id from suspended")])

    async def timers(self) -> set[tuple[str, str]]:
        rows = await self.sql("select execution_id, kind from timer")
        return {(next(iter(self.names([row[0]]))), row["kind"]) for row in rows}

    def requested(self, messages: list[Any]) -> set[str]:
        """Return the executions that these messages schedule. No limit applies, so they go to the route `work.default`."""
        assert {message["queue"] for message in messages} <= {"work.default"}
        return self.names(ids_of(messages, "work.default"))
