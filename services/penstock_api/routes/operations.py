"""The routes for operators of a live installation: workers, invariants, findings."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from penstock.operate import check, workers
from penstock.operate.doctor import examine
from penstock.operate.doctor.finding import Finding
from penstock.operate.overview import Overview, newest_failures, summed_up
from penstock.store.executions import recoveries as losses
from penstock.store.processes import processes
from penstock_api.auth.access import OPERATE_ALL, READ, READ_ALL, Tenants
from penstock_api.backend import Db, Here, Lists
from penstock_api.models import operations as models
from penstock_api.models.model import Instant
from penstock_api.routes.router import Router

router = Router("operations")


@router.get("/overview", dependencies=[READ_ALL])
async def overview(backend: Here) -> Overview:
    """Return the state of the installation: the executions that ended in the last minute, the waiting work, the
    workers, the latest failures."""
    activity = await backend.look_at_activity()
    async with backend.reading.session() as session:
        failures = await newest_failures(session)
    return summed_up(activity, failures, backend.settings.stale_threshold)


@router.get("/workers", dependencies=[READ_ALL])
async def list_workers(
    session: Db,
    fresh: Annotated[
        bool, Query(description="Leave out dead processes, and those with an overdue heartbeat.")
    ] = False,
) -> list[processes.Process]:
    """List the executors and workers, dead ones included."""
    return await workers.listed(session, fresh=fresh)


@router.get("/workers/{name}", dependencies=[READ_ALL])
async def show_workers(name: str, session: Db) -> list[processes.Process]:
    """Show the workers of this name, with the state of the processes, threads and pods in which they run actions."""
    return await workers.named(session, name)


@router.post("/workers/{name}/cordon", dependencies=[OPERATE_ALL])
async def cordon(name: str, session: Db) -> models.Workers:
    """Cordon the workers of this name, so that they take no new work. Running work goes on."""
    return models.Workers(names=await workers.cordon(session, [name]))


@router.post("/workers/{name}/uncordon", dependencies=[OPERATE_ALL])
async def uncordon(name: str, session: Db) -> models.Workers:
    """Uncordon the workers of this name, so that they take new work again."""
    return models.Workers(names=await workers.uncordon(session, [name]))


@router.get("/check", dependencies=[READ_ALL])
async def invariants(session: Db) -> list[check.CheckedInvariant]:
    """List every invariant, with its current violations."""
    return await check.check(session)


@router.get("/doctor", dependencies=[READ_ALL])
async def doctor(backend: Here) -> list[Finding]:
    """Examine versions, servers, schema, clocks, partitions and services. A finding that is not `ok` has the next step."""
    return await examine(backend.settings)


@router.get("/recoveries", dependencies=[READ])
async def recoveries(
    session: Lists,
    tenants: Tenants,
    since: Annotated[Instant | None, Query(description="The first instant; by default a day ago.")] = None,
    kind: Annotated[Literal["attempt", "fire"] | None, Query(description="Only losses of this kind.")] = None,
    worker: Annotated[
        str | None, Query(description="Only attempts and fires that were lost with this worker.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")] = 50,
) -> list[losses.Recovery]:
    """List the attempts and fires that were recovered after a worker or a message was lost, the newest first."""
    return await losses.newest(session, since, kind=kind, worker=worker, tenants=tenants, limit=limit)
