"""`python -m bench`: Penstock beside its peers, in one run."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import machine, result_file, tables
from bench.errors import CannotMeasure
from bench.run import run
from bench.systems import ON_A_FULL_DATABASE, SYSTEMS
from bench.works import WORKS
from bench.works.effort import FULL, QUICK
from penstock import PenstockError
from tests.servers.errors import NoServer

WIDTH = 140
"""Of the tables where there is no terminal."""
TRANSPORTS = tuple(dict.fromkeys(system.transport for system in SYSTEMS))
NAMES = tuple(dict.fromkeys(system.name for system in SYSTEMS))


def chosen(selection: str, available: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Return the names in `selection`, separated by commas; all of them when it is empty."""
    names = tuple(name.strip() for name in selection.split(",") if name.strip()) or available
    if unknown := [name for name in names if name not in available]:
        raise CannotMeasure(
            f"No such {kind}: {', '.join(unknown)}.", hint=f"There are {', '.join(available)}."
        )
    return names


def main(
    quick: Annotated[bool, typer.Option("--quick", help="One short round, not three long ones.")] = False,
    rounds: Annotated[int, typer.Option(help="How often each system comes up. Default: 3, quick 1.")] = 0,
    only: Annotated[str, typer.Option(help="Systems, separated by commas. Default: all.")] = "",
    work: Annotated[str, typer.Option(help="Works, separated by commas. Default: all.")] = "",
    transport: Annotated[str, typer.Option(help="Of " + ", ".join(TRANSPORTS) + ". Default: all.")] = "",
    archived: Annotated[
        int, typer.Option(help="Also measure Penstock on a database in which so many have ended before.")
    ] = 0,
    jsonl: Annotated[
        Path | None, typer.Option(help="Also write a JSON line for the run and one a figure to this file.")
    ] = None,
) -> None:
    """Measure Penstock and its peers on this machine, on servers of its own, one after the other."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    try:
        names = chosen(only, NAMES, "system")
        works = chosen(work, tuple(WORKS), "work")
        transports = chosen(transport, TRANSPORTS, "transport")
        systems = [s for s in SYSTEMS if s.name in names and s.transport in transports]
        if archived:
            systems.append(ON_A_FULL_DATABASE)
        effort = QUICK if quick else FULL
        effort = replace(effort, rounds=rounds or effort.rounds)
        outcome = asyncio.run(run(systems, works, effort, console, archived))
    except (PenstockError, NoServer) as error:
        console.print(str(error), style="red", markup=False)
        console.print(getattr(error, "hint", None) or "", markup=False)
        raise typer.Exit(2) from None
    ran = machine.described(effort, outcome)
    if jsonl:
        result_file.write(ran, outcome.figures, jsonl)
    console.print(", ".join([f"{ran.cores} cores", *(f"{name} {it}" for name, it in ran.versions.items())]))
    tables.show(outcome.figures, console)
    if not outcome.figures and not outcome.failures:
        outcome.failures.append("none of these systems takes part in any of these works")
    for failure in outcome.failures:
        console.print(f"failed: {failure}", style="red", markup=False)
    sys.exit(1 if outcome.failures else 0)


if __name__ == "__main__":
    typer.run(main)
