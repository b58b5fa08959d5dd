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
    id: Annotated[
        str,
        typer.Argument(
            help="An execution of a durable function. With --key it is left out, and NAME comes first.",
            autocompletion=name_completion.executions,
        ),
    ],
    name: Annotated[
        str | None, typer.Argument(help="The name of the signal, as in ctx.signal(NAME).")
    ] = None,
    value: Annotated[str | None, typer.Argument(help="JSON, or plain text. Default: null.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Signal the function that was started with this idempotency key.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="The tenant of the key. Default: public.")] = None,
    json: Json = False,
) -> None:
    """Send a signal to a durable function. It is stored if the function does not wait for it yet."""
    content = [word for word in (id, name, value) if word is not None]
    receiver = parse_id(content.pop(0)) if key is None else None
    if not 1 <= len(content) <= 2:
        raise typer.BadParameter(
            "Name the receiver and the signal: penstock signal ID NAME [VALUE], or penstock signal --key KEY NAME [VALUE]."
        )
    word, sent_value = content[0], parse_value(content[1]) if len(content) == 2 else None
    sent = by_either(lambda client: client.signal(receiver, word, sent_value, key=key, tenant=tenant))
    execution = sent.execution_id or receiver  # an older API answers without the id
    if json:
        json_line({"id": execution, "signal": word, "awaited": sent.is_awaited, "awaits": sent.awaits})
        return
    if sent.notice is not None:
        err.print(f"[yellow]warning:[/yellow] {escape(sent.notice)}")
    out.print(f"Sent. See the execution with: penstock show {execution}")


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
