"""What a process writes about itself: that it is there, that it still is, what state it is in, and that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from penstock.store.database import Session


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
    """What a heartbeat was answered: attempts that are not ours any more, attempts to cancel, attempts that the
    database thinks we hold and we do not, and whether it knows us at all."""

    lost: Sequence[UUID] = ()
    canceling: Sequence[UUID] = ()
    missing: Sequence[UUID] = ()
    known: bool = True
    cordoned: bool = False


REGISTER = """
insert into process (id, kind, name, routes, actions, labels, concurrency)
values ($1, $2, $3, $4, $5, $6::jsonb, $7)
on conflict (id) do update set beat_at = clock_timestamp(), state = 'active', holding = '{}', missing = '{}'
"""


async def register(session: Session, me: Identity) -> None:
    """From now on the others know this process."""
    labels = orjson.dumps(dict(me.labels)).decode()
    await session.fetch(
        REGISTER, me.id, me.kind, me.name, list(me.routes), list(me.actions), labels, me.concurrency
    )


BEAT = "select known, cordoned, lost, canceling, missing from beat($1, $2::uuid[], $3::integer[], make_interval(secs => $4))"


async def beat(session: Session, id: UUID, holding: Mapping[UUID, int], silence: float) -> Pulse:
    """It lives, and holds these attempts (execution to number). If no process at all has beaten for `silence` seconds,
    the database or the network was away, which is noted."""
    [row] = await session.fetch(BEAT, id, list(holding), list(holding.values()), silence)
    return Pulse(row["lost"], row["canceling"], row["missing"], row["known"], row["cordoned"])


SET_STATE = "update process set state = $2 where id = $1 and state <> 'dead'"


async def set_state(session: Session, id: UUID, state: str) -> None:
    """It is `active`, `cordoned` or `draining`."""
    await session.fetch(SET_STATE, id, state)


LEAVE = """
with gone as (
    delete from process where id = $1 and not exists (select from claim where worker = $1)
)
update process set beat_at = '-infinity' where id = $1 and exists (select from claim where worker = $1)
"""


async def leave(session: Session, id: UUID) -> None:
    """It is no more. One that still holds attempts is swept at the next opportunity."""
    await session.fetch(LEAVE, id)
