"""The row of a process about itself: its registration, heartbeats, state and departure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import orjson

from penstock.store.session import connection_shares
from penstock.store.session.connection_shares import ConnectionRoom
from penstock.store.session.database import Row, Session
from penstock.store.session.master_keys import held_keys


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a process. `id` is random, so that a restarted process under the same name is another one."""

    id: UUID
    kind: str
    name: str
    routes: Sequence[str] = ()
    actions: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 0


@dataclass(frozen=True, slots=True)
class Pulse:
    """The answer to a heartbeat. `lost_attempts` are attempts that the process has lost: execution to number, as the
    heartbeat named them. The next attempt of such an execution may have come to the process meanwhile. `canceling` are
    executions with an attempt that it has to cancel. `missing` are attempts that the database has for it, and that it does
    not know. `is_registered`: the process is registered. `cordoned`: it must take no new work. `share`: the connections that
    it may have. `ending` are those among `canceling` with the status canceling: a durable function is so only after a second
    request."""

    lost_attempts: Mapping[UUID, int] = field(default_factory=dict)
    canceling: Sequence[UUID] = ()
    missing: Sequence[UUID] = ()
    is_registered: bool = True
    cordoned: bool = False
    share: int = 0
    ending: Sequence[UUID] = ()


NOTE_SILENCE = "select note_silence(make_interval(secs => $1))"


async def note_silence(session: Session, silence: float) -> None:
    """Record it if no process has sent a heartbeat for `silence` seconds: the database or the network was away."""
    await session.fetch(NOTE_SILENCE, silence)


REGISTER = """
insert into process (id, kind, name, routes, actions, labels, concurrency, lock_key, locked_at, master_keys)
values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, case when $8::bigint is not null then clock_timestamp() end, $9)
on conflict (id) do update set beat_at = clock_timestamp(), holding = '{}', missing = '{}',
    state = case process.state when 'dead' then 'active' else process.state end,
    lock_key = excluded.lock_key, locked_at = excluded.locked_at, unlocked_at = null, master_keys = excluded.master_keys
"""


async def register(session: Session, me: Identity, lock: int | None) -> None:
    """Insert the row of a process, which holds the lock `lock`, if any. A process that was marked dead is active
    again; a cordon stays. The row has the ids of the process's master keys, so that a rotation can check them."""
    labels = orjson.dumps(dict(me.labels)).decode()
    await session.fetch(
        REGISTER,
        me.id,
        me.kind,
        me.name,
        list(me.routes),
        list(me.actions),
        labels,
        me.concurrency,
        lock,
        held_keys(session.settings),
    )


BACKEND = "select pg_backend_pid() as pid"
LOCK = "select pg_advisory_lock($1)"
# The commit is relaxed, as a heartbeat's is: the lock can be taken again even while commits wait for a standby.
RELOCK = """
with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
update process set lock_key = $2, locked_at = clock_timestamp(), unlocked_at = null from relaxed where id = $1
"""


async def hold_lock(connection: asyncpg.Connection[Row], id: UUID) -> int | None:
    """Take an advisory lock that is released when this connection or the process ends. Record it, if the process is
    registered, and return its key. Each connection has its own lock, so that none waits for that of a session that
    was cut off and that the server still has. Return None behind a pooler: its sessions outlive their users."""
    [row] = await connection.fetch(BACKEND)
    key = None
    if row["pid"] == connection.get_server_pid():
        key = secrets.randbits(63)
        await connection.fetch(LOCK, key)
    await connection.fetch(RELOCK, id, key)
    return key


# On one line, so that the log of the server can be searched for it.
BEAT = " ".join(
    f"""
select known, cordoned, lost, canceling, missing, room, used, foreign_connections, services,
    (select count(*) from process p where p.state <> 'dead' and p.id < $1)::integer as place,
    array(select c from unnest(canceling) c where (select e.status from execution e where e.id = c) = 'canceling') as ending
from beat($1, $2::uuid[], $3::integer[], make_interval(secs => $4), $5::jsonb), ({connection_shares.ROOM}) room
""".split()
)


async def beat(
    session: Session, id: UUID, holding: Mapping[UUID, int], silence: float, executors: str | None = None
) -> Pulse:
    """Send the heartbeat of a process that runs these attempts (execution to number). A silence of all processes is
    recorded as in `note_silence`. `executors` (JSON) are figures of its task executors; None leaves the former ones."""
    [row] = await session.fetch(BEAT, id, list(holding), list(holding.values()), silence, executors)
    room = ConnectionRoom(row["room"], row["used"], row["foreign_connections"], row["services"])
    share = room.share(row["place"])
    lost_attempts = {id: holding[id] for id in row["lost"]}
    return Pulse(
        lost_attempts, row["canceling"], row["missing"], row["known"], row["cordoned"], share, row["ending"]
    )


SET_STATE = "update process set state = $2 where id = $1 and state <> 'dead'"


async def set_state(session: Session, id: UUID, state: str) -> None:
    """Set the state of a process (`penstock.language.moves.processes`), unless it was marked dead."""
    await session.fetch(SET_STATE, id, state)


WITHDRAW = "delete from permit where worker = $1"
LEAVE = """
with gone as (
    delete from process where id = $1 and not exists (select from claim where worker = $1)
)
update process set beat_at = '-infinity' where id = $1 and exists (select from claim where worker = $1)
"""


async def leave(session: Session, id: UUID) -> None:
    """Delete a process. If it still owns attempts, the sweeper takes them back soon. Its permits go first: that waits for
    submits that have taken one, and their claims are seen then."""
    await session.fetch(WITHDRAW, id)
    await session.fetch(LEAVE, id)
