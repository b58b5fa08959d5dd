"""The command `penstock top`, a live view of the installation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live

from penstock.cli.output import Json, age, grid, json_line, out, span
from penstock.cli.server import read
from penstock.language.moves.processes import DEAD
from penstock.operate.overview import CAUSES, Overview
from penstock.run.root_cause import short_cause

LEAST = 1.0
"""The minimum number of seconds between two looks. Each look runs the queries of the start page."""


def top(
    once: Annotated[
        bool, typer.Option("--once", help="Print the figures once. Without a terminal, this is the default.")
    ] = False,
    every: Annotated[float, typer.Option(min=LEAST, help="Seconds between two updates.")] = 2.0,
    json: Json = False,
) -> None:
    """Show the installation until Ctrl-C: ended executions, durations, waiting work, workers, the latest failures."""
    read(lambda client: _shown(client.overview, once, every, json))


async def _shown(look: Callable[[], Awaitable[Overview]], once: bool, every: float, json: bool) -> None:
    """Print the view once if the output is not a terminal. In a terminal, refresh it at each interval."""
    if json:
        json_line(_document(await look()))
    elif once or not out.is_terminal:
        out.print(_drawn(await look()))
    else:
        with Live(_drawn(await look()), console=out, screen=True, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every)
                live.update(_drawn(await look()), refresh=True)


def _document(overview: Overview) -> dict[str, Any]:
    """Return the JSON of the API's `/overview`, without the task executors of heartbeats."""
    processes = [
        {name: value for name, value in asdict(process).items() if name not in ("labels", "executors")}
        for process in overview.processes
    ]
    return {**asdict(overview), "processes": processes}


def _drawn(overview: Overview) -> Group:
    last = overview.lately
    figures = [(f"{last.rate:,.1f}/s", last.ended, last.failed, _took(last.p50), _took(last.p95))]
    period = f"last {span(timedelta(seconds=last.span))}"
    waiting = [
        (CAUSES[group.cause][0], CAUSES[group.cause][1], group.count, age(group.oldest))
        for group in overview.standing
    ]
    living = [
        (p.name, p.kind, p.state, p.routes, p.held, p.concurrency, f"{span(p.age)} ago")
        for p in overview.processes
        if p.is_online(overview.stale_threshold)
    ]
    failed = [
        (short_cause(f.failure or f.status), f.action, f.id, age(f.finished_at)) for f in overview.failures
    ]
    return Group(
        grid(
            ["ends", "last minute", "failed", *(f"{name}, {period}, with waits" for name in ("p50", "p95"))],
            figures,
        ),
        "",
        grid(["open", "what for", "how many", "oldest"], waiting) if waiting else "Nothing is open.",
        "",
        grid(["name", "kind", "state", "routes", "holds", "slots", "last heartbeat"], living)
        if living
        else "No process is online.",
        *_offline(overview),
        "",
        grid(["failure", "action", "execution", "ended"], failed) if failed else "Nothing has failed.",
    )


def _offline(overview: Overview) -> list[str]:
    """Return the line that counts the processes that are not online; none if all are."""
    offline = [p for p in overview.processes if not p.is_online(overview.stale_threshold)]
    if not offline:
        return []
    dead = sum(p.state == DEAD for p in offline)
    silent = f"{len(offline) - dead} without a heartbeat for {overview.stale_threshold:g} s"
    counts = [text for text, number in ((f"{dead} dead", dead), (silent, len(offline) - dead)) if number]
    return [f"Not online: {', '.join(counts)}. List all workers with: penstock workers list --all"]


def _took(seconds: float | None) -> str:
    return "-" if seconds is None else span(timedelta(seconds=seconds))


def add_to(app: typer.Typer) -> None:
    app.command()(top)
