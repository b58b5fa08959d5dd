"""The commands `penstock audit`: list and export the audit, and verify that it was not edited."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from penstock.cli import execution_filter as of
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, out, table
from penstock.errors import InvalidInput, NotFound
from penstock.extras import missing
from penstock.operate import audit as operate
from penstock.operate.audit import Head, Verified
from penstock.store.access import audit as store
from penstock.store.access.audit import AuditedChange, AuditFilter
from penstock.store.session import audited_change
from penstock.tracing.switch import is_installed as tracing_is_installed

if TYPE_CHECKING:
    from penstock.store.session.database import Session
    from penstock.tracing.log_records import Line

audit = typer.Typer(
    help="List, export and verify the audit log: changes and refusals, with their callers.",
    no_args_is_help=True,
)

BIGINT = 2**63 - 1
"""The largest id or position in the audit."""
By = Annotated[str | None, typer.Option(help="Only changes by this caller: token:ci, user:ada, command:ada.")]
Operation = Annotated[
    str | None,
    typer.Option(
        help="Only operations that begin with this text, and commands of this name: tokens_ or tokens."
    ),
]
Target = Annotated[str | None, typer.Option(help="Only targets that begin with this text.")]
Outcome = Annotated[str | None, typer.Option(help="Only with this outcome: done, refused or unchanged.")]
DatabaseRole = Annotated[str | None, typer.Option(help="Only rows that this database role wrote.")]
NamedTenant = Annotated[
    str | None, typer.Option("--tenant", help="Only changes whose values name this tenant.")
]
Heads = Annotated[
    list[str] | None,
    typer.Option(
        "--head", help="A head that you stored outside of Penstock, POSITION:SEAL. May be repeated."
    ),
]
AT_ONCE = 500
"""The number of rows in one request to a collector."""
LATE = 60.0
"""The seconds after which an unsealed row is late."""
SENT = (
    "id",
    "position",
    "by",
    "role",
    "operation",
    "target",
    "outcome",
    "reason",
    "details",
    "previous",
    "seal",
)
"""The fields that become attributes of a log record."""


def _matching(
    by: str | None,
    operation: str | None,
    target: str | None,
    outcome: str | None,
    role: str | None,
    since: str | None,
    until: str | None,
    tenant: str | None,
) -> AuditFilter:
    outcomes = (audited_change.DONE, audited_change.REFUSED, audited_change.UNCHANGED)
    if outcome is not None and outcome not in outcomes:
        raise InvalidInput(f"there is no outcome {outcome!r}", hint=f"Available: {', '.join(outcomes)}.")
    return AuditFilter(
        by,
        operation,
        target,
        outcome,
        role,
        of.instant("--since", since),
        of.instant("--until", until),
        tenant,
    )


@audit.command("list")
def list_(
    by: By = None,
    operation: Operation = None,
    target: Target = None,
    outcome: Outcome = None,
    role: DatabaseRole = None,
    tenant: NamedTenant = None,
    since: of.AuditSince = None,
    until: of.AuditUntil = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    end: Annotated[
        int | None,
        typer.Option("--before", max=BIGINT, help="List only rows that are older than the one with this id."),
    ] = None,
    json: Json = False,
) -> None:
    """List the newest changes and refusals."""
    matching = _matching(by, operation, target, outcome, role, since, until, tenant)
    rows = with_session(lambda session: store.newest(session, matching, end=end, limit=limit))
    if json:
        for row in rows:
            json_line(operate.plain(row))
        return
    table(
        ["id", "at", "by", "operation", "target", "outcome", "values", "reason"],
        [(r.id, r.at, r.by, r.operation, r.target, r.outcome, r.details, r.reason or "") for r in rows],
        empty="There are none.",
    )
    if len(rows) == limit:
        err.print(f"[dim]There may be more: --before {rows[-1].id}[/dim]")


@audit.command()
def export(
    by: By = None,
    operation: Operation = None,
    target: Target = None,
    outcome: Outcome = None,
    role: DatabaseRole = None,
    tenant: NamedTenant = None,
    since: of.AuditSince = None,
    until: of.AuditUntil = None,
    position: Annotated[
        int,
        typer.Option(
            "--after",
            min=0,
            max=BIGINT,
            help="Only rows after this position, such as the last one of the previous export.",
        ),
    ] = 0,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send the rows as log records to OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = False,
) -> None:
    """Print sealed rows as JSON lines, oldest first, or send them to a log collector. A complete export can be
    verified."""
    matching = _matching(by, operation, target, outcome, role, since, until, tenant)
    if otlp and not tracing_is_installed():
        raise missing(["tracing"])

    async def work(session: Session) -> int | None:
        rows = operate.exported(session, position, matching)
        if otlp:
            return await _send(rows, position)
        await _print(rows)
        return None

    last = with_session(work)
    if last is not None:
        err.print(f"[dim]The rest: --after {last}[/dim]")


async def _print(rows: AsyncIterator[AuditedChange]) -> None:
    async for row in rows:
        json_line(operate.plain(row))


async def _send(rows: AsyncIterator[AuditedChange], position: int) -> int:
    from penstock.tracing.log_records import LogSender

    sender, last, batch = LogSender("penstock.audit"), position, []
    try:
        async for row in rows:
            batch.append(row)
            if len(batch) == AT_ONCE:
                await asyncio.to_thread(sender.send, [_line(row) for row in batch])
                last, batch = batch[-1].position or last, []
        if batch:
            await asyncio.to_thread(sender.send, [_line(row) for row in batch])
            last = batch[-1].position or last
    finally:
        sender.close()
    return last


def _line(row: AuditedChange) -> Line:
    from penstock.tracing.log_records import Line

    plain = operate.plain(row)
    document = {f"penstock.audit.{name}": plain[name] for name in SENT if plain[name] is not None}
    return Line(
        row.at,
        f"{row.by} {row.operation} {row.target} {row.outcome}",
        {**document, "penstock.audit.details": row.details},
    )


@audit.command()
def head(json: Json = False) -> None:
    """Print the end of the hash chain. Store this value outside of Penstock: with it you can prove later that no
    earlier row was edited."""
    chain = with_session(store.chain)
    if chain is None:
        raise NotFound(
            "the row with the end of the hash chain is missing", hint="Run `penstock audit verify`."
        )
    newest = Head(chain.position, chain.seal)
    if json:
        json_line({"head": str(newest), "position": chain.position, "unsealed": chain.unsealed})
    else:
        out.print(str(newest), markup=False)


@audit.command()
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An export, a file that the retention wrote, or - for standard input; by default the database."
        ),
    ] = None,
    heads: Heads = None,
    json: Json = False,
) -> None:
    """Verify that no row was edited, deleted, inserted or cut off. The exit code is 1 if a row was."""
    noted = [Head.read(text) for text in heads or ()]
    if file is None:
        result = with_session(lambda session: operate.verify(session, noted))
    else:
        with _lines(file) as lines:
            result = operate.verify_lines(lines, noted)
    _show(result, json)
    if result.faults:
        raise typer.Exit(1)


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[bytes]]:
    if str(file) == "-":
        yield iter(sys.stdin.buffer)
        return
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            yield iter(opened)
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror or error}",
            hint="Name a file that `penstock audit export` has written.",
        ) from None


def _show(result: Verified, json: bool) -> None:
    if json:
        json_line(
            {
                "rows": result.rows,
                "first": result.first,
                "last": result.last,
                "head": None if result.head is None else str(result.head),
                "unsealed": result.unsealed,
                "unsealed_for": result.unsealed_for,
                "faults": result.faults,
            }
        )
        return
    for fault in result.faults:
        err.print(f"[red]{escape(fault)}[/red]")
    if not result.faults:
        out.print(f"{result.rows:,} rows, from {result.first} to {result.last}, are unchanged.")
        out.print(f"head: {result.head}", markup=False)
    if result.unsealed:
        seconds = result.unsealed_for or 0
        err.print(f"[dim]{result.unsealed:,} rows are not sealed yet, the oldest for {seconds:.0f} s.[/dim]")
        if seconds > LATE:
            err.print("A running executor seals new rows within seconds. Check that an executor is running.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(audit, name="audit")
