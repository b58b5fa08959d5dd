"""Processes that live or do not, as a test says, and what they have claimed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.penstock.store.stand import AGO, Stand

ME, OTHER, DEAD, STRANGER = (UUID(int=n) for n in range(1, 5))
SOON = 10
"""Seconds after which a statement waits for what it should pass over."""


async def process(
    stand: Stand, id: UUID, name: str, *, beat: str = "0 s", unlocked: str | None = None, **columns: Any
) -> None:
    """`beat`: how long ago; or `-infinity`, the instant."""
    columns = {"id": id, "name": name, "kind": "worker"} | columns
    places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    await stand.sql(f"insert into process ({', '.join(columns)}) values ({places})", *columns.values())
    await stand.sql(
        "update process set unlocked_at = clock_timestamp() - $3::text::interval, beat_at = case $2::text"
        " when '-infinity' then '-infinity' else clock_timestamp() - $2::text::interval end where id = $1",
        *(id, "0 s" if beat == "-infinity" else beat, unlocked),
    )
    if beat == "-infinity":
        await stand.sql("update process set beat_at = '-infinity' where id = $1", id)


async def claim(stand: Stand, number: int, worker: UUID, *names: str, ago: timedelta = AGO) -> None:
    await stand.sql(
        "insert into claim (id, worker, executions, claimed_at) values ($1, $2, $3, clock_timestamp() - $4::interval)",
        *(UUID(int=number), worker, [stand.ids[name] for name in names], ago),
    )


async def claims(stand: Stand) -> set[int]:
    return {row["id"].int for row in await stand.sql("select id from claim")}


async def runs(stand: Stand, *names: str, status: str = "running", claim: UUID = ME, **columns: Any) -> None:
    for name in names:
        await stand.add(name, status, claim=claim, **{"attempt": 1, **columns})
