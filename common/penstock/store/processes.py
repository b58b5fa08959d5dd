"""Executors and workers that live, as their heartbeats say."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.store.database import Row, Session

LIST = """
select p.id, p.kind, p.name, p.state, p.routes, p.actions, p.labels::text as labels, p.concurrency, p.started_at, p.beat_at,
    clock_timestamp() - greatest(p.beat_at, p.started_at) as age, cardinality(p.holding) as held
from process p where ($1::text is null or p.kind = $1) order by p.kind, p.name
"""


async def all(session: Session, kind: str | None = None) -> list[Row]:
    """Every process, of one kind if given."""
    return await session.fetch(LIST, kind)


CORDON = "update process set state = $2 where name = any($1::text[]) and kind = 'worker' and state = $3 returning name"


async def cordon(session: Session, names: Sequence[str]) -> list[str]:
    """These workers take no new work. Returns the names found active."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), "cordoned", "active")]


async def uncordon(session: Session, names: Sequence[str]) -> list[str]:
    """These workers take work again. Returns the names found cordoned."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), "active", "cordoned")]
