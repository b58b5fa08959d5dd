"""The command `penstock watch`, which prints every status change of an execution."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.output import Json, json_line, out, text
from penstock.cli.server import read
from penstock.language.moves import COMPLETED, FINAL
from penstock.store.executions.executions import Move

PAUSE = 0.5
"""The seconds between two looks."""


def watch(
    id: Annotated[
        UUID, typer.Argument(parser=parse_id, help="An execution.", autocompletion=name_completion.executions)
    ],
    json: Json = False,
) -> None:
    """Show every status change of an execution until it ends. Exit code 0 if it completed, 1 if it ended in any other
    way."""
    status = read(lambda client: _follow(lambda: client.history(id), json))
    if status != COMPLETED:
        raise typer.Exit(1)


async def _follow(look: Callable[[], Awaitable[list[Move]]], json: bool) -> str:
    """Print the new moves at each look, and return the final status."""
    shown_count = 0
    while True:
        moves = await look()
        for move in moves[shown_count:]:
            if json:
                json_line(move)
            else:
                why = f"  {text(move.reason)}" if move.reason else ""
                out.print(f"{text(move.at)}  {text(move.new)}  [dim]{text(move.actor)}[/dim]{why}")
        shown_count = len(moves)
        if moves and moves[-1].new in FINAL:
            return moves[-1].new
        await asyncio.sleep(PAUSE)


def add_to(app: typer.Typer) -> None:
    app.command()(watch)
