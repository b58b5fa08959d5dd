"""The page of workers and executors, and of the routes of work."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from penstock.language.moves.processes import DEAD
from penstock.operate import routes
from penstock.operate.workers import is_outdated
from penstock.store.admission import waiting_work
from penstock.store.processes import processes
from penstock_api.auth.access import READ_ALL
from penstock_api.backend import Db, Here
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("operations")


@router.get("/workers", dependencies=[READ_ALL])
async def show(request: Request, session: Db, backend: Here) -> Response:
    """Show processes, routes, and the rules that choose routes."""
    rows = await processes.all(session)
    current = [entry for entry in rows if entry.state != DEAD]
    queues = await waiting_work.routes(session, backend.settings.stale_threshold)
    return page(
        request,
        "workers.html",
        workers=[entry for entry in current if entry.kind == "worker"],
        outdated={entry.id for entry in rows if is_outdated(entry.sdk)},
        others=[entry for entry in current if entry.kind != "worker"],
        dead=[entry for entry in rows if entry.state == DEAD],
        has_executor=any(
            entry.kind == "executor" and entry.is_online(backend.settings.stale_threshold) for entry in rows
        ),
        stale=backend.settings.stale_threshold,
        routes=await routes.table(session, backend.settings),
        rules=await routes.rules(session),
        queues={entry.queue.removeprefix("work."): entry for entry in queues},
        every=2,
    )
