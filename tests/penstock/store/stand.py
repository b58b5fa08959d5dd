"""Executions that stand as a test says, written straight into the tables: what a function sees in each, and acts on or not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
from penstock.store.session.database import Database
from tests.penstock.store.race_scene import Scene

AGO = timedelta(hours=1)
HELD = "held"


class Stand:
    """`ids` are executions by the names that a test gave them."""

    def __init__(self, home: Database) -> None:
        self.home = home
        self.session = home.session()
        self.ids: dict[str, UUID] = {}
        self.definition = 0
        self.namespaces: dict[tuple[str, str | None], int] = {}

    async def prepare(self) -> Stand:
        scene = Scene(self.home)
        await scene.prepare()
        self.definition = scene.definition
        self.namespaces["action", "work.default"] = scene.namespace
        return self

    async def sql(self, statement: str, *values: Any) -> list[Any]:
        return await self.session.fetch(statement, *values)

    async def namespace(self, kind: str, queue: str | None) -> int:
        if (kind, queue) not in self.namespaces:
            [row] = await self.sql(
                "insert into namespace (name, action, kind, queue) values ($1, 'a.b', $2, $3) returning id",
                *(f"public::{kind}::{queue}", kind, queue),
            )
            self.namespaces[kind, queue] = row["id"]
        return self.namespaces[kind, queue]

    async def add(
        self,
        name: str,
        status: str,
        *,
        ready: timedelta = AGO,
        since: timedelta | None = None,
        queue: str = "work.default",
        kind: str = "action",
        live: bool = True,
        restaged: timedelta | None = None,
        parent: str | None = None,
        options: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> UUID:
        """`ready`, `since` and `restaged` are how long ago. Other columns as they are called."""
        id = self.ids[name] = new_id()
        columns |= {
            "id": id,
            "status": status,
            "definition_id": self.definition,
            "task": name if parent else None,
        }
        columns |= {
            "namespace_id": await self.namespace(kind, queue),
            "parent": self.ids[parent] if parent else None,
        }
        columns["not_before"] = (
            (await self.held()) if columns.get("not_before") == HELD else columns.get("not_before")
        )
        places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
        await self.sql(f"insert into execution ({', '.join(columns)}) values ({places})", *columns.values())
        await self.sql(
            "update execution set ready_at = clock_timestamp() - $2::interval, since = clock_timestamp() - $3::interval,"
            " finished_at = case when status in ('completed', 'failed') then clock_timestamp() - $2::interval end where id = $1",
            *(id, ready, since),
        )
        if live:
            await self.sql("insert into live values ($1, clock_timestamp() - $2::interval)", id, restaged)
        if options is not None:
            await self.sql(
                "insert into payload (execution_id, params, options) values ($1, '{}', $2::text::jsonb)",
                *(id, orjson.dumps(options).decode()),
            )
        return id

    async def held(self) -> Any:
        [row] = await self.sql("select held_until() as at")
        return row["at"]

    async def timer(self, name: str, kind: str, ago: timedelta = AGO) -> None:
        await self.sql(
            "insert into timer (due_at, kind, execution_id) values (clock_timestamp() - $3::interval, $2, $1)",
            *(self.ids[name], kind, ago),
        )

    async def message(self, name: str, queue: str) -> None:
        """One of it that is still to be sent."""
        await self.sql("insert into outbox (queue, ids) values ($2, array[$1::uuid])", self.ids[name], queue)

    def names(self, ids: list[UUID]) -> set[str]:
        return {name for name, id in self.ids.items() if id in set(ids)}

    async def with_status(self, status: str) -> set[str]:
        return self.names(
            [row["id"] for row in await self.sql("select id from execution where status = $1", status)]
        )
