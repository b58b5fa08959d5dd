"""The commands `penstock dead-letters`, about messages that could not be handled."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer

from penstock.cli import bulk_output
from penstock.cli.arguments import parse_id
from penstock.cli.bulk_output import DryRun
from penstock.cli.command_runner import with_client, with_session
from penstock.cli.output import Json, age, err, fields, json_line, out, table
from penstock.client import dead_letters
from penstock.client.bulk import BulkOutcome
from penstock.client.client import Client
from penstock.errors import InvalidInput, NotFound
from penstock.store.outbox.dead_letters import DeadLetterSummary, LetterFilter
from penstock.store.session.database import Session

commands = typer.Typer(
    help="List, count, show, replay and drop messages that could not be handled.", no_args_is_help=True
)

Ids = Annotated[list[UUID] | None, typer.Argument(parser=parse_id, help="Dead letters.")]
Queue = Annotated[str | None, typer.Option(help="Only letters of this queue, such as event.received.")]
Reason = Annotated[
    str | None,
    typer.Option(help="Only letters with this text in the reason, or with a reason as `counts` shows it."),
]
All = Annotated[bool, typer.Option("--all", help="All dead letters.")]


@commands.command("list")
def list_(
    queue: Queue = None,
    reason: Reason = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 50,
    before: Annotated[
        UUID | None,
        typer.Option(parser=parse_id, help="List only dead letters that are older than this one."),
    ] = None,
    json: Json = False,
) -> None:
    """List dead letters, newest first, each with its reason."""
    letter_filter = LetterFilter(queue=queue, reason=reason)

    async def work(session: Session) -> tuple[list[DeadLetterSummary], int]:
        rows = await dead_letters.newest(session, letter_filter, limit=limit, before=before)
        return rows, sum(group.letters for group in await dead_letters.counts(session, letter_filter))

    rows, total = with_session(work)
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["id", "queue", "failures", "last", "reason"],
        [(row.id, row.queue, row.count, age(row.last_at), row.reason) for row in rows],
        empty="There are none."
        if total or queue or reason
        else "No dead letters: everything could be handled.",
    )
    if len(rows) < total:
        next_page = f" The next page: --before {rows[-1].id}" if len(rows) == limit else ""
        err.print(
            f"[dim]{len(rows):,} of {total:,}. By reason: penstock dead-letters counts.{next_page}[/dim]"
        )


@commands.command()
def counts(queue: Queue = None, reason: Reason = None, json: Json = False) -> None:
    """Count dead letters by queue and reason, largest count first. In a reason, `#` stands for ids and numbers."""
    rows = with_session(
        lambda session: dead_letters.counts(session, LetterFilter(queue=queue, reason=reason))
    )
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["letters", "failures", "queue", "last", "reason", "example"],
        [(r.letters, r.deliveries, r.queue, age(r.last_at), r.reason, r.example) for r in rows],
        empty="No dead letters: everything could be handled.",
    )
    if rows:
        err.print(f"[dim]{sum(row.letters for row in rows):,} in all.[/dim]")


@commands.command()
def show(
    id: Annotated[UUID, typer.Argument(parser=parse_id, help="A dead letter.")], json: Json = False
) -> None:
    """Show a dead letter, with its headers and its body."""

    letter = with_session(lambda session: dead_letters.shown(session, id))
    if json:
        json_line(letter)
        return
    details = {name: value for name, value in asdict(letter).items() if name not in ("body", "cut_from")}
    fields({"dead letter" if name == "id" else name: value for name, value in details.items()})
    cut = (
        f": of {letter.cut_from:,} bytes, only the beginning was kept" if letter.cut_from is not None else ""
    )
    out.print(f"[dim]body{cut}[/dim]")
    out.print(letter.body, markup=False, highlight=False)


@commands.command()
def replay(
    ids: Ids = None,
    queue: Queue = None,
    reason: Reason = None,
    every: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Put dead letters back into their queues, once the cause is fixed. The command can be
    repeated after an interruption: each letter is put back once. Exit code 1 if some cannot be put back."""
    selection = _chosen(ids, queue, reason, every)

    async def work(client: Client) -> list[BulkOutcome]:
        return [outcome async for outcome in dead_letters.replay(client, selection, dry_run=dry_run)]

    done = with_client(work)
    if ids and not done:
        raise _missing()
    bulk_output.show(done, "would be replayed" if dry_run else "replayed", each=bool(ids), json=json)


@commands.command()
def drop(
    ids: Ids = None,
    queue: Queue = None,
    reason: Reason = None,
    every: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete dead letters."""
    selection = _chosen(ids, queue, reason, every)
    count = with_session(lambda session: dead_letters.drop(session, selection, dry_run=dry_run))
    if ids and not count:
        raise _missing()
    if json:
        json_line({"dropped": 0 if dry_run else count, "matched": count})
    else:
        out.print(f"{count:,} {'would be ' if dry_run else ''}dropped.")


def _chosen(ids: list[UUID] | None, queue: str | None, reason: str | None, every: bool) -> LetterFilter:
    if not (ids or queue or reason or every):
        raise InvalidInput(
            "nothing is selected", hint="Give the ids of dead letters, or --queue or --reason, or --all."
        )
    return LetterFilter(ids or None, queue, reason)


def _missing() -> NotFound:
    return NotFound("no such dead letter", hint="`penstock dead-letters list` lists the dead letters.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="dead-letters")
