"""Executors and workers that live, as their heartbeats say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from penstock.language.moves.processes import ACTIVE, CORDONED
from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(slots=True)
class Process:
    """An executor or a worker. `age` is the time since its last beat, and `held` how many attempts it named then. `labels` is
    JSON, and `executors` (JSON) the numbers of its task executors by their names."""

    id: UUID
    kind: str
    name: str
    state: str
    routes: list[str]
    actions: list[str]
    labels: str
    concurrency: int
    started_at: datetime
    beat_at: datetime
    age: timedelta
    held: int
    executors: str


LIST = """
select p.id, p.kind, p.name, p.state, p.routes, p.actions, p.labels::text as labels, p.concurrency, p.started_at, p.beat_at,
    clock_timestamp() - greatest(p.beat_at, p.started_at) as age, cardinality(p.holding) as held,
    p.executors::text as executors
from process p where ($1::text is null or p.kind = $1) order by p.kind, p.name
"""


async def all(session: Session, kind: str | None = None) -> list[Process]:
    """Every process, of one kind if given."""
    return rows_as(Process, await session.fetch(LIST, kind))


CORDON = "update process set state = $2 where name = any($1::text[]) and kind = 'worker' and state = $3 returning name"


async def cordon(session: Session, names: Sequence[str]) -> list[str]:
    """These workers take no new work. Returns the names found active."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), CORDONED, ACTIVE)]


async def uncordon(session: Session, names: Sequence[str]) -> list[str]:
    """These workers take work again. Returns the names found cordoned."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), ACTIVE, CORDONED)]


@dataclass(slots=True)
class LostProcess:
    """A process that is gone, why it is thought so, how long ago it was heard, and how many attempts were taken from it."""

    id: UUID
    name: str
    reason: str
    age: timedelta
    recovered: int


REAP = """
select worker, name, reason, age, moved, messages
from reap_process(make_interval(secs => $1), make_interval(secs => $2), make_interval(secs => $3))
"""


async def reap(tx: Transaction, stale: float, silence: float, grace: float) -> LostProcess | None:
    """Take everything away from one process that is gone: its session ended more than `grace` seconds ago, or it has not
    beaten for `stale` seconds (and not all were silent for `silence` seconds lately). None: there is none. The whole
    transaction, in one round trip."""
    for row in await tx.stage_alone(REAP, stale, silence, grace):
        return LostProcess(row["worker"], row["name"], row["reason"], row["age"], len(row["moved"]))
    return None


FORGET_DEAD = "delete from process where state = 'dead' and beat_at < clock_timestamp() - interval '1 day'"


async def forget_dead(session: Session) -> None:
    """Forget processes that are dead for a day."""
    await session.fetch(FORGET_DEAD)
