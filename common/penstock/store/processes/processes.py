"""The list of executors and workers, and the recovery of lost ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.language.moves.processes import ACTIVE, CORDONED, DEAD
from penstock.store.session.database import Session, Transaction
from penstock.store.session.http_field_types import JsonText, Seconds
from penstock.store.session.rows import rows_as

REGISTERED = """
select distinct kind from process
where started_at >= $1 and state = 'active'
"""


async def registered_since(session: Session, instant: datetime) -> set[str]:
    """Return the kinds of the processes that have registered since this instant of the database's clock."""
    return {row["kind"] for row in await session.fetch(REGISTERED, instant)}


@dataclass(slots=True)
class Process:
    """An executor or a worker, by its last heartbeat."""

    id: Annotated[UUID, Field(description="The id of the process, a new one at each start.")]
    kind: Annotated[
        str,
        Field(
            description="`worker`: it runs actions. `executor`: it schedules executions and fires schedules."
        ),
    ]
    name: Annotated[str, Field(description="The name that it was started with.")]
    state: Annotated[
        str,
        Field(
            description="`active`: it takes work. `cordoned`: an operator stopped it from taking new work. `draining`: "
            "it is about to stop. `dead`: it is gone, and its work was taken back."
        ),
    ]
    routes: Annotated[
        list[str],
        Field(description="For a worker: the routes (work queues) that it serves. Empty for an executor."),
    ]
    actions: Annotated[
        list[str],
        Field(description="For a worker: the actions for which it has the code. Empty for an executor."),
    ]
    labels: Annotated[
        JsonText,
        Field(
            description="For a worker: its properties, as texts by name. It runs an action only if it has all "
            "labels that the action asks for."
        ),
    ]
    concurrency: Annotated[
        int, Field(description="For a worker: the number of attempts that it runs at once.")
    ]
    started_at: Annotated[datetime, Field(description="The instant at which it started.")]
    beat_at: Annotated[datetime, Field(description="The instant of its last heartbeat.")]
    age: Annotated[Seconds, Field(description="The seconds since its last heartbeat.")]
    held: Annotated[int, Field(description="The number of attempts that it holds, as of its last heartbeat.")]
    executors: Annotated[
        JsonText,
        Field(
            description="For a worker: the state of its task executors (processes, threads, pods), by name."
        ),
    ]
    language: Annotated[str | None, Field(description="For a worker over HTTP: its language; else null.")]
    sdk: Annotated[
        str | None, Field(description="For a worker over HTTP: its library, with the version; else null.")
    ]

    def is_online(self, stale: float) -> bool:
        """Return whether the process sent a heartbeat within `stale` seconds, and was not marked dead."""
        return self.state != DEAD and self.age.total_seconds() <= stale


LIST = """
select p.id, p.kind, p.name, p.state, p.routes, p.actions, p.labels::text as labels, p.concurrency, p.started_at, p.beat_at,
    clock_timestamp() - greatest(p.beat_at, p.started_at) as age, cardinality(p.holding) as held,
    p.executors::text as executors, p.language, p.sdk
from process p where ($1::text is null or p.kind = $1) order by p.kind, p.name
"""


async def all(session: Session, kind: str | None = None) -> list[Process]:
    """Return every process, or those of one kind."""
    return rows_as(Process, await session.fetch(LIST, kind))


CORDON = "update process set state = $2 where name = any($1::text[]) and kind = 'worker' and state = $3 returning name"


async def cordon(session: Session, names: Sequence[str]) -> list[str]:
    """Let these workers take no new work. Return the names of those that were active."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), CORDONED, ACTIVE)]


async def uncordon(session: Session, names: Sequence[str]) -> list[str]:
    """Let these workers take work again. Return the names of those that were cordoned."""
    return [row["name"] for row in await session.fetch(CORDON, list(names), ACTIVE, CORDONED)]


@dataclass(slots=True)
class LostProcess:
    """A process that is gone, with the reason to assume that. `age` is the time since its last heartbeat, and
    `recovered` the number of attempts that were taken back."""

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
    """Take all attempts from one process that is gone: its session ended more than `grace` seconds ago, or its last
    heartbeat is older than `stale` seconds. After a silence of all processes (no heartbeat for `silence` seconds), old
    heartbeats count only once `stale` seconds have passed. Return None if no process is gone. Commits by itself
    (`stage_alone`): `tx` must not have run a statement."""
    for row in await tx.stage_alone(REAP, stale, silence, grace):
        return LostProcess(row["worker"], row["name"], row["reason"], row["age"], len(row["moved"]))
    return None


RESTORE_CLAIMS = "select restore_claims($1, $2) as restored"


async def restore_claims(session: Session, cursor: UUID, limit: int) -> int:
    """Insert claims of running attempts that no claim of their worker names, among the next `limit` open executions after
    the id `cursor`. Return their number. The heartbeats of the worker decide then whether it has lost such an attempt."""
    [row] = await session.fetch(RESTORE_CLAIMS, cursor, limit)
    return int(row["restored"])


DISOWN = """
update process set locked_at = '-infinity'
where state <> 'dead' and lock_key is not null and greatest(started_at, locked_at) < to_timestamp($1)
"""


async def disown(session: Session, instant: float) -> None:
    """Note that every process with a session that registered before `instant` (seconds since 1970) has ended, whatever
    the server can tell about its lock. The next `reap` that finds its lock free takes its attempts back after the usual grace.
    A process that takes its lock again is alive, and loses nothing."""
    await session.fetch(DISOWN, instant)


FORGET_DEAD = "delete from process where state = 'dead' and beat_at < clock_timestamp() - interval '1 day'"


async def forget_dead(session: Session) -> None:
    """Delete processes that have been dead for a day."""
    await session.fetch(FORGET_DEAD)
