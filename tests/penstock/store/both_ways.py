"""A random game that is played twice on one database, by a short way and by a long one, and compared table by table."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from penstock.language.terms.ids import new_id
from tests.penstock.store.stand import Stand

TABLES = """
select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
    and relname !~ '^(definition|catalog|namespace|concurrency_limit|legal_move|cluster|process|penstock_|alembic)'
"""
INSTANT = re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"')
RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Of lanes."""


class Played:
    """One database, on which each game is played from the same beginning. `ids` are named in the order of their making."""

    def __init__(self, stand: Stand, seed: int) -> None:
        self.stand = stand
        self.draw = random.Random(seed)
        self.ids: list[UUID] = []

    def id(self) -> UUID:
        self.ids.append(new_id())
        return self.ids[-1]

    async def dump(self) -> dict[str, list[str]]:
        """All rows of all tables, with names for ids and no instants, sorted."""
        rows: dict[str, list[str]] = {}
        for table in sorted(row["relname"] for row in await self.stand.sql(TABLES)):
            numbered = "- 'id'" if table in ("outbox", "finished", "subscribed_move") else "- 'seq'"
            dumped = await self.stand.sql(f"select (to_jsonb(t) {numbered})::text as row from {table} t")
            rows[table] = sorted(self.named(row["row"]) for row in dumped)
        rows["order"] = [
            self.named(str(tuple(row)))
            for row in await self.stand.sql(
                "select execution_id, new, h.ready_at = e.ready_at, h.at >= e.created_at from history h"
                " join execution e on e.id = h.execution_id order by execution_id, at"
            )
        ]
        return rows

    def named(self, text: str) -> str:
        for number, id in enumerate(self.ids):
            text = text.replace(str(id), f"execution {number}")
        return RANDOM_ID.sub("random", INSTANT.sub("instant", text))


async def clean(stand: Stand) -> None:
    names = [row["relname"] for row in await stand.sql(TABLES)]
    async with stand.session.transaction() as tx:
        await tx.execute("; ".join(f"delete from {name}" for name in names))
        await tx.execute("update cluster set announced = '{}', subscribed = '{}'")
        await tx.execute(
            "update namespace set limits = '{}', lacked = false; update catalog set enabled = true"
        )


Game = Callable[..., Awaitable[Any]]
"""Plays with a Played, `short` or not, and returns what a caller is answered."""


async def play_both_ways(stand: Stand, game: Game, seed: int) -> Any:
    """Play a game by both ways, and return its answer. Fail if the answers or the tables differ."""
    outcomes = []
    for short in (True, False):
        await clean(stand)
        played = Played(stand, seed)
        answer = await game(played, short=short)
        outcomes.append((answer, await played.dump()))
    [(answer, tables), (long_answer, long_tables)] = outcomes
    assert answer == long_answer, f"seed {seed}: {answer} != {long_answer}"
    differing = {
        name: (tables[name], long_tables[name]) for name in tables if tables[name] != long_tables[name]
    }
    assert not differing, f"seed {seed}: {differing}"
    return answer
