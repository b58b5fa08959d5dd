"""The completion of names by TAB, from the installation or the server. Nothing is completed if neither answers soon."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from penstock.client.http_client import HttpClient
    from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
    from penstock.store.processes.processes import Process
    from penstock.store.session.database import Session

PATIENCE = 2.0
"""The seconds after which no names are offered."""
NEWEST = 30
"""The number of executions that are offered."""
PATHS = {"action": "/actions", "workflow": "/actions", "trigger": "/triggers", "rule": "/rules"}
"""The API's path for definitions of each kind."""

Offered = list[tuple[str, str]]
"""The offered names, each with the text that some shells show beside it."""
OfSession = Callable[["Session"], Awaitable[Offered]]
OfServer = Callable[["HttpClient"], Awaitable[Offered]]
Complete = Callable[[typer.Context], Offered]

# A command that is run needs none of these imports, so each function imports what it uses.


def _asking(of_session: OfSession, of_server: OfServer) -> Complete:
    """Return a completion that reads names from the database or the server, whichever the command uses. It shows no
    errors."""

    def complete(ctx: typer.Context) -> Offered:
        from penstock.cli.command_runner import SERVER
        from penstock.cli.server import chosen_server, read
        from penstock.client.installation import can_be_asked

        options = ctx.find_root().params
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            _end_after(PATIENCE)
            SERVER.set((options.get("server"), options.get("profile")))
            if chosen_server() is not None or can_be_asked():
                return read(of_session, of_server)
        return []

    return complete


def _end_after(seconds: float) -> None:
    """Exit this process after so many seconds, even if a thread is blocked, such as by the look-up of a host name."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _definitions(*kinds: str) -> Complete:
    def offered(rows: Iterable[Mapping[str, Any]]) -> Offered:
        return [(row["ref"], _said(row)) for row in rows if row["kind"] in kinds]

    async def of_session(session: Session) -> Offered:
        from penstock.operate import definitions

        return offered(await definitions.listed(session, kinds))

    async def of_server(client: HttpClient) -> Offered:
        paths = sorted({PATHS[kind] for kind in kinds})
        return offered([row for path in paths for row in await client.get_json(path)])

    return _asking(of_session, of_server)


def _said(row: Mapping[str, Any]) -> str:
    """Return the first line of a definition's description, or else its kind."""
    lines = str(row["definition"].get("description") or "").strip().splitlines()
    return (lines[0] if lines else row["kind"]) if row["enabled"] else "out of use"


def _executions(among: Callable[[], ExecutionFilter]) -> Complete:
    def offered(rows: Iterable[ListedExecution]) -> Offered:
        return [(str(row.id), f"{row.status} {row.action}") for row in rows]

    async def of_session(session: Session) -> Offered:
        from penstock.store.executions import execution_list

        return offered(await execution_list.page(session, among(), limit=NEWEST))

    async def of_server(client: HttpClient) -> Offered:
        return offered(await client.executions(among(), limit=NEWEST))

    return _asking(of_session, of_server)


def _any() -> ExecutionFilter:
    from penstock.store.executions.execution_list import ExecutionFilter

    return ExecutionFilter()


def _open() -> ExecutionFilter:
    from penstock.language.moves import MOVES
    from penstock.store.executions.execution_list import ExecutionFilter

    return ExecutionFilter(status=list(MOVES))


def _waiting() -> ExecutionFilter:
    from penstock.language.moves import WAITING
    from penstock.store.executions.execution_list import ExecutionFilter

    return ExecutionFilter(status=[WAITING])


async def _limits(session: Session) -> Offered:
    from penstock.client.limits import in_force

    return [(row.ref, f"of {row.scope}") for row in await in_force(session)]


async def _limits_of(client: HttpClient) -> Offered:
    return [(row.ref, f"of {row.scope}") for row in await client.limits.in_force()]


async def _schedules(session: Session) -> Offered:
    from penstock.client.schedules import state_of
    from penstock.store.schedules import reading

    return [(row.ref, state_of(row)) for row in await reading.listed(session)]


async def _schedules_of(client: HttpClient) -> Offered:
    return [(row["ref"], row["state"]) for row in await client.schedules.all()]


def _named(processes: Sequence[Process]) -> Offered:
    return [(process.name, process.state) for process in processes if process.kind == "worker"]


async def _workers(session: Session) -> Offered:
    from penstock.store.processes import processes

    return _named(await processes.all(session))


async def _workers_of(client: HttpClient) -> Offered:
    return _named(await client.workers.all())


async def _routes(session: Session) -> Offered:
    from penstock.client.installation import find_installation
    from penstock.operate import routes

    return [
        (use.route, f"{use.workers} workers")
        for use in await routes.table(session, await find_installation())
    ]


async def _routes_of(client: HttpClient) -> Offered:
    return [(row["route"], f"{row['workers']} workers") for row in await client.get_json("/routes")]


async def _patterns(session: Session) -> Offered:
    from penstock.operate import routes

    return [(rule.pattern, f"to {rule.route}") for rule in await routes.rules(session)]


async def _patterns_of(client: HttpClient) -> Offered:
    return [(row["pattern"], f"to {row['route']}") for row in await client.get_json("/route-rules")]


actions = _definitions("action", "workflow")
workflows = _definitions("workflow")
triggers = _definitions("trigger")
rules = _definitions("rule")
definitions = _definitions("action", "workflow", "trigger")
executions = _executions(_any)
open_executions = _executions(_open)
waiting_executions = _executions(_waiting)
limits = _asking(_limits, _limits_of)
schedules = _asking(_schedules, _schedules_of)
workers = _asking(_workers, _workers_of)
routes = _asking(_routes, _routes_of)
route_patterns = _asking(_patterns, _patterns_of)


def routes_by_commas(ctx: typer.Context, incomplete: str) -> Offered:
    """Complete the last of several routes, separated by commas: `gpu,lo` may become `gpu,local`."""
    prefix = incomplete.rpartition(",")[0]
    named = prefix.split(",")
    return [
        (",".join([*([prefix] if prefix else []), name]), description)
        for name, description in routes(ctx)
        if name not in named
    ]


def statuses() -> Offered:
    """Return the statuses of executions."""
    from penstock.language.moves import FINAL, STATUSES

    return [(status, "has ended" if status in FINAL else "has not ended") for status in STATUSES]
