"""The rows of a process about itself: its registration, its heartbeats, its state, and its departure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import orjson

from penstock.store.session import connection_room
from penstock.store.session.connection_room import ConnectionRoom
from penstock.store.session.database import Row, Session


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a process. `id` is random: a restart under the same name inherits nothing."""

    id: UUID
    kind: str
    name: str
    routes: Sequence[str] = ()
    actions: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 0


@dataclass(frozen=True, slots=True)
class Pulse:
    """The answer to a heartbeat. It names attempts that are not ours any more, attempts to cancel, and attempts that only
    the database thinks we hold. `known` says whether the database knows us at all, `share` how many connections we may have."""

    lost: Sequence[UUID] = ()
    canceling: Sequence[UUID] = ()
    missing: Sequence[UUID] = ()
    known: bool = True
    cordoned: bool = False
    share: int = 0


NOTE_SILENCE = "select note_silence(make_interval(secs => $1))"


async def note_silence(session: Session, silence: float) -> None:
    """If no process at all has beaten for `silence` seconds, the database or the network was away, which is noted."""
    await session.fetch(NOTE_SILENCE, silence)


REGISTER = """
insert into process (id, kind, name, routes, actions, labels, concurrency, lock_key, locked_at)
values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, case when $8::bigint is not null then clock_timestamp() end)
on conflict (id) do update set beat_at = clock_timestamp(), holding = '{}', missing = '{}',
    state = case process.state when 'dead' then 'active' else process.state end,
    lock_key = excluded.lock_key, locked_at = excluded.locked_at, unlocked_at = null
"""


async def register(session: Session, me: Identity, lock: int | None) -> None:
    """From now on the others know this process, and that it holds this lock, if any. One that was taken for dead is active
    again; a cordon stays."""
    labels = orjson.dumps(dict(me.labels)).decode()
    await session.fetch(
        REGISTER, me.id, me.kind, me.name, list(me.routes), list(me.actions), labels, me.concurrency, lock
    )


BACKEND = "select pg_backend_pid() as pid"
LOCK = "select pg_advisory_lock($1)"
# Relaxed as the heartbeats are: a connection is opened anew while commits wait for a standby, too.
RELOCK = """
with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
update process set lock_key = $2, locked_at = clock_timestamp(), unlocked_at = null from relaxed where id = $1
"""


async def hold_lock(connection: asyncpg.Connection[Row], id: UUID) -> int | None:
    """Take a lock that goes when this connection or its process does, and say so, if the process is registered. Every
    connection has one of its own: none waits for the lock of a session that was cut off and that the server thinks alive. None
    where a pooler stands in between: its sessions outlive their users."""
    [row] = await connection.fetch(BACKEND)
    key = None
    if row["pid"] == connection.get_server_pid():
        key = secrets.randbits(63)
        await connection.fetch(LOCK, key)
    await connection.fetch(RELOCK, id, key)
    return key


# In one line, by which the log of the server can be searched.
BEAT = " ".join(
    f"""
select known, cordoned, lost, canceling, missing, room, used, others, services,
    (select count(*) from process p where p.state <> 'dead' and p.id < $1)::integer as place
from beat($1, $2::uuid[], $3::integer[], make_interval(secs => $4), $5::jsonb), ({connection_room.ROOM}) room
""".split()
)


async def beat(
    session: Session, id: UUID, holding: Mapping[UUID, int], silence: float, executors: str | None = None
) -> Pulse:
    """It lives, and holds these attempts (execution to number). A silence of all processes is noted as `note_silence` does.
    `executors` (JSON): what its task executors say of themselves, None for what they said before."""
    [row] = await session.fetch(BEAT, id, list(holding), list(holding.values()), silence, executors)
    room = ConnectionRoom(row["room"], row["used"], row["others"], row["services"])
    share = room.share(row["place"])
    return Pulse(row["lost"], row["canceling"], row["missing"], row["known"], row["cordoned"], share)


SET_STATE = "update process set state = $2 where id = $1 and state <> 'dead'"


async def set_state(session: Session, id: UUID, state: str) -> None:
    """It is in this state (`penstock.language.moves.processes`) from now on, unless it was taken for dead."""
    await session.fetch(SET_STATE, id, state)


WITHDRAW = "delete from permit where worker = $1"
LEAVE = """
with gone as (
    delete from process where id = $1 and not exists (select from claim where worker = $1)
)
update process set beat_at = '-infinity' where id = $1 and exists (select from claim where worker = $1)
"""


async def leave(session: Session, id: UUID) -> None:
    """It is no more. One that still holds attempts is swept at the next opportunity. Its permits go first: that waits for submits
    that have taken one, and their claims are seen then."""
    await session.fetch(WITHDRAW, id)
    await session.fetch(LEAVE, id)
