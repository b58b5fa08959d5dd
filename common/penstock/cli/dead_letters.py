"""`penstock dead-letters`: messages that could not be handled."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated
from uuid import UUID

import typer

from penstock.cli.command_runner import with_client, with_session
from penstock.cli.output import Json, age, complain, fields, json_line, out, table
from penstock.client import dead_letters
from penstock.client.client import Client
from penstock.errors import NotFound, PenstockError
from penstock.messaging.dead_letters import TRIGGER
from penstock.operate.masking import Masking
from penstock.store.database import Session
from penstock.store.dead_letters import DeadLetter

commands = typer.Typer(
    help="Messages that could not be handled: see why, put them back, drop them.", no_args_is_help=True
)

Ids = Annotated[list[UUID], typer.Argument(help="Dead letters.")]


@commands.command("list")
def list_(
    queue: Annotated[
        str | None, typer.Option(help="Only those of this queue, such as event.received.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    json: Json = False,
) -> None:
    """List them, the newest first, with the reason of each."""
    rows = with_session(lambda session: dead_letters.newest(session, queue=queue, limit=limit))
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["id", "queue", "times", "last", "reason"],
        [(row.id, row.queue, row.count, age(row.last_at), row.reason) for row in rows],
        empty="No dead letters: everything could be handled.",
    )


@commands.command()
def show(id: Annotated[UUID, typer.Argument(help="A dead letter.")], json: Json = False) -> None:
    """Show one, with its headers and its body."""

    async def work(session: Session) -> DeadLetter:
        letter = await dead_letters.find(session, id)
        trigger = letter.headers.get(TRIGGER)
        if trigger is None:
            return letter
        return replace(letter, body=(await Masking.load(session)).text(str(trigger), letter.body))

    found = with_session(work)
    if json:
        json_line(found)
        return
    shown = {name: value for name, value in asdict(found).items() if name != "body"}
    fields({"dead letter" if name == "id" else name: value for name, value in shown.items()})
    out.print("[dim]body[/dim]")
    out.print(found.body, markup=False, highlight=False)


@commands.command()
def replay(ids: Ids, json: Json = False) -> None:
    """Put them back where they came from, once what was wrong is right."""

    async def work(client: Client) -> list[tuple[UUID, str | PenstockError]]:
        done: list[tuple[UUID, str | PenstockError]] = []
        for id in ids:
            try:
                done.append((id, await dead_letters.replay(client, id)))
            except PenstockError as error:
                done.append((id, error))
        return done

    failed = False
    for id, what in with_client(work):
        if isinstance(what, PenstockError):
            failed = True
            complain(what)
        elif json:
            json_line({"id": id, "replayed": what})
        else:
            out.print(f"{id} is replayed: {what}")
    if failed:
        raise typer.Exit(1)


@commands.command()
def drop(ids: Ids, json: Json = False) -> None:
    """Forget them."""
    dropped = with_session(lambda session: dead_letters.drop(session, ids))
    if not dropped:
        raise NotFound("no such dead letter", hint="`penstock dead-letters list` shows them.")
    if json:
        json_line({"dropped": dropped})
    else:
        out.print(f"{len(dropped)} dropped.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="dead-letters")
