"""The commands for durable functions: signal, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id, parse_value
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, out
from penstock.cli.server import by_either
from penstock.engine.durable.replay import Replayed
from penstock.language.loading import load
from penstock.operate import durable_replay
from penstock.store.session.database import Session

RunId = Annotated[
    UUID,
    typer.Argument(
        parser=parse_id, help="An execution of a durable function.", autocompletion=name_completion.executions
    ),
]


def signal(
    id: RunId,
    name: Annotated[str, typer.Argument(help="The name of the signal, as in ctx.signal(NAME).")],
    value: Annotated[str, typer.Argument(help="JSON, or plain text.")] = "null",
    json: Json = False,
) -> None:
    """Send a signal to a durable function. It is stored if the function does not wait for it yet."""
    sent = by_either(lambda client: client.signal(id, name, parse_value(value)))
    if json:
        json_line({"id": id, "signal": name, "awaited": sent.is_awaited, "awaits": sent.awaits})
        return
    if sent.notice is not None:
        err.print(f"[yellow]warning:[/yellow] {escape(sent.notice)}")
    out.print(f"Sent. See what came of it with: penstock show {id}")


def replay(
    id: RunId,
    against: Annotated[Path, typer.Option(help="The Python file, or folder, of the code to try.")],
    json: Json = False,
) -> None:
    """Replay the records of a run with other code. Nothing is run, and nothing is written. Exit code 1 if the code
    does not fit the records."""
    definitions = load(against)

    async def work(session: Session) -> Replayed:
        return await durable_replay.replay(session, id, definitions)

    outcome = with_session(work)
    if json:
        json_line({"id": id, "fits": outcome.fits, "says": outcome.says})
    else:
        out.print(
            f"{'It fits' if outcome.fits else 'It does not fit'}: {outcome.says.removesuffix('.')}.",
            markup=False,
        )
    if not outcome.fits:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    for command in (signal, replay):
        app.command()(command)
