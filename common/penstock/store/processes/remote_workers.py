"""The rows of workers that call a gateway. Such a worker lives for as long as its heartbeats come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from penstock.store.processes.heartbeats import Identity, Pulse
from penstock.store.session.database import Session
from penstock.store.session.rows import first_as, rows_as

REGISTER = """
insert into process (id, kind, name, routes, actions, labels, concurrency, language, sdk, session, token, tenants, patience)
values ($1, 'worker', $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9, $10, $11, make_interval(secs => $12))
"""


async def register(
    session: Session,
    worker: Identity,
    *,
    language: str,
    sdk: str,
    digest: bytes,
    token: str,
    tenants: Sequence[str] | None,
    patience: float,
) -> None:
    """Insert the row of a worker. `digest` is that of the secret of its session, and `token` the name of the caller.
    The worker is lost `patience` seconds after its last heartbeat. No `tenants` means all."""
    labels = orjson.dumps(dict(worker.labels)).decode()
    await session.fetch(
        REGISTER,
        worker.id,
        worker.name,
        list(worker.routes),
        list(worker.actions),
        labels,
        worker.concurrency,
        language,
        sdk,
        digest,
        token,
        None if tenants is None else sorted(tenants),
        patience,
    )


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """A worker that calls a gateway. `labels` is JSON. `tenants` is None for all. `token` is the name of the caller
    that began the session."""

    id: UUID
    name: str
    routes: list[str]
    actions: list[str]
    labels: str
    concurrency: int
    token: str
    tenants: list[str] | None
    state: str


FIND = """
select id, name, routes, actions, labels::text as labels, concurrency, token, tenants, state
from process where id = $1 and session = $2 and state <> 'dead'
"""


async def find(session: Session, id: UUID, digest: bytes) -> RemoteWorker | None:
    """Return a live worker if this is the digest of its session's secret; None otherwise."""
    return first_as(RemoteWorker, await session.fetch(FIND, id, digest))


BEAT = """
select known, cordoned, lost, canceling, missing from beat($1, $2::uuid[], $3::integer[], make_interval(secs => $4))
"""


async def beat(session: Session, worker: UUID, holding: Mapping[UUID, int], silence: float) -> Pulse:
    """Write the heartbeat of a worker that holds these attempts (execution to number)."""
    [row] = await session.fetch(BEAT, worker, list(holding), list(holding.values()), silence)
    lost_attempts = {id: holding[id] for id in row["lost"]}
    return Pulse(lost_attempts, row["canceling"], row["missing"], row["known"], row["cordoned"])


BEAT_WAITING = """
with noted as (select note_silence(make_interval(secs => $2))), beaten as (
    update process set beat_at = clock_timestamp() from noted
    where id = any($1::uuid[]) and state <> 'dead' and not exists (select from claim c where c.worker = process.id)
        and beat_at < clock_timestamp() - make_interval(secs => $3))
select w.id, p.state from unnest($1::uuid[]) w (id) left join process p on p.id = w.id and p.state <> 'dead'
where p.state is distinct from 'active'
"""


async def beat_waiting(
    session: Session, workers: Sequence[UUID], silence: float, older: float
) -> dict[UUID, str | None]:
    """Write heartbeats of workers that wait for work at a gateway. A worker with a heartbeat in the last `older` seconds
    needs none. A worker with attempts has to send its own. Return the states of those workers that are not active, which are
    few; None is that of a lost worker."""
    rows = await session.fetch(BEAT_WAITING, list(workers), silence, older)
    return {row["id"]: row["state"] for row in rows}


@dataclass(frozen=True, slots=True)
class LiveRemoteWorker:
    """A live worker that calls a gateway. `token_name` is that of the token which began its session; it is None for a caller
    without one. `has_token` tells whether that token exists. No `expires_at` means never."""

    name: str
    language: str
    sdk: str
    token_name: str | None
    has_token: bool
    expires_at: datetime | None


LIVE = """
select p.name, p.language, p.sdk, substring(p.token from '^token:(.*)$') as token_name, t.name is not null as has_token,
    t.expires_at
from process p left join api_token t on p.token = 'token:' || t.name
where p.session is not null and p.state <> 'dead' and p.beat_at > clock_timestamp() - make_interval(secs => $1)
order by p.name, p.id
"""


async def live(session: Session, stale: float) -> list[LiveRemoteWorker]:
    """Return the workers that call a gateway with a heartbeat within `stale` seconds."""
    return rows_as(LiveRemoteWorker, await session.fetch(LIVE, stale))


CANCELING = """
select e.claim as worker, e.id, e.attempt from execution e
where e.id = any($1::uuid[]) and e.claim = any($2::uuid[])
    and (e.status = 'canceling' or e.status = 'running' and e.ends_as is not null)
"""


async def canceling(session: Session, ids: Sequence[UUID], workers: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    """Return the executions among `ids` with a requested end that these workers run, by worker."""
    by_worker: dict[UUID, list[UUID]] = {}
    for row in await session.fetch(CANCELING, list(ids), list(workers)):
        by_worker.setdefault(row["worker"], []).append(row["id"])
    return by_worker
