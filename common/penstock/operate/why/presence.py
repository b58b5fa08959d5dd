"""The live processes that could run an execution: executors, and workers that serve its route and have its action."""

from __future__ import annotations

from uuid import UUID

from penstock.language.terms.executor_names import REMOTE
from penstock.operate.why.answer import count
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.executions.executions import Execution
from penstock.store.outbox.queues import WORK
from penstock.store.processes import presence
from penstock.store.processes.presence import Workers
from penstock.store.session.database import Session

NO_EXECUTOR = "waits for an executor, and none is online"
START_EXECUTOR = "Start an executor with `penstock executor`, or all services with `penstock dev`."


async def executors(session: Session, settings: Settings) -> int:
    """Return the number of live executors."""
    return await presence.executors(session, settings.stale_threshold)


async def workers(session: Session, row: Execution, settings: Settings) -> Workers:
    """Return counts of the live workers, with those that serve the route of this execution and have its action."""
    route = row.open_queue.removeprefix(WORK)
    return await presence.workers(session, settings.stale_threshold, route, row.action)


async def held(session: Session, row: Execution, settings: Settings) -> list[UUID]:
    """Return the executions on the live workers that serve the route of this execution and have its action."""
    route = row.open_queue.removeprefix(WORK)
    return await presence.held(session, settings.stale_threshold, route, row.action)


async def missing(session: Session, row: Execution, workers: Workers) -> tuple[str, str]:
    """Return a clause that says which worker is missing, and a sentence that says what to start."""
    body = (await catalog.bodies(session, [row.definition_id])).get(row.definition_id, {})
    route = row.open_queue.removeprefix(WORK)
    if workers.leaving:
        near = f"{count(workers.leaving, 'worker')} could run it, but {'takes' if workers.leaving == 1 else 'take'} no new work"
    elif workers.on_route:
        near = count(
            workers.on_route, "worker serves this route, but lacks", "workers serve this route, but lack"
        )
        near += " the action"
    elif workers.with_action:
        near = count(
            workers.with_action,
            "worker has the action, but serves other routes",
            "workers have the action, but serve other routes",
        )
    else:
        near = "the online workers do neither" if workers.live else "no worker is online"
    if body.get("executor") == REMOTE:
        start = f"a program that offers {row.action} on the route {route} (docs/workers-in-any-language.md)"
    else:
        start = f"penstock worker --module FILE --routes {route}"
    return (
        f"waits for a worker that serves the route {route} and has {row.action}: {near}",
        f"Start such a worker: {start}",
    )
