"""The completion of names by TAB, from the installation or the server. Nothing is completed if neither answers soon."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient
    from penstock.store.executions.execution_list import ExecutionFilter

PATIENCE = 2.0
"""The seconds after which no names are offered."""
NEWEST = 30
"""The number of executions that are offered."""

Offered = list[tuple[str, str]]
"""The offered names, each with the text that some shells show beside it."""
Work = Callable[["AnyClient"], Awaitable[Offered]]
Complete = Callable[[typer.Context], Offered]

# A command that is run needs none of these imports, so each function imports what it uses.


def _asking(work: Work) -> Complete:
    """Return a completion that reads names from the database or the server, whichever the command uses. The completion
    shows no errors."""

    def complete(ctx: typer.Context) -> Offered:
        from penstock.cli.command_runner import SERVER
        from penstock.cli.server import chosen_server, read
        from penstock.client.installation import can_be_asked

        options = ctx.find_root().params
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            _end_after(PATIENCE)
            SERVER.set((options.get("server"), options.get("profile")))
            if chosen_server() is not None or can_be_asked():
                return read(work)
        return []

    return complete


def _end_after(seconds: float) -> None:
    """Exit this process after so many seconds, even if a thread is blocked, such as by the look-up of a host name."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _definitions(*kinds: str) -> Complete:
    async def offered(client: AnyClient) -> Offered:
        return [(row["ref"], _said(row)) for row in await client.definitions(kinds)]

    return _asking(offered)


def _said(row: Mapping[str, Any]) -> str:
    """Return the first line of a definition's description, or else its kind."""
    lines = str(row["definition"].get("description") or "").strip().splitlines()
    return (lines[0] if lines else row["kind"]) if row["enabled"] else "out of use"


def _executions(among: Callable[[], ExecutionFilter]) -> Complete:
    async def offered(client: AnyClient) -> Offered:
        rows = await client.executions(among(), limit=NEWEST)
        return [(str(row.id), f"{row.status} {row.action}") for row in rows]

    return _asking(offered)


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


async def _limits(client: AnyClient) -> Offered:
    return [(row.ref, f"of {row.scope}") for row in await client.limits.all()]


async def _schedules(client: AnyClient) -> Offered:
    return [(row.ref, row.state) for row in await client.schedules.all()]


async def _workers(client: AnyClient) -> Offered:
    from penstock.language.moves.processes import DEAD

    return [
        (process.name, process.state)
        for process in await client.workers.all()
        if process.kind == "worker" and process.state != DEAD
    ]


async def _routes(client: AnyClient) -> Offered:
    return [(use.route, f"{use.workers} workers") for use in await client.routes()]


async def _patterns(client: AnyClient) -> Offered:
    return [(rule.pattern, f"to {rule.route}") for rule in await client.routing_rules()]


async def _views(client: AnyClient) -> Offered:
    from penstock.language.terms.local_access import LOCAL_ACCESS

    return [
        (view.name, view.description or "a saved view") for view in await client.views.all(by=LOCAL_ACCESS)
    ]


actions = _definitions("action", "workflow")
workflows = _definitions("workflow")
triggers = _definitions("trigger")
rules = _definitions("rule")
definitions = _definitions("action", "workflow", "trigger")
executions = _executions(_any)
open_executions = _executions(_open)
waiting_executions = _executions(_waiting)
limits = _asking(_limits)
schedules = _asking(_schedules)
views = _asking(_views)
workers = _asking(_workers)
routes = _asking(_routes)
route_patterns = _asking(_patterns)


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
