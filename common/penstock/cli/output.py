"""What commands print: tables for people, JSON lines for programs (`--json`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from penstock.errors import PenstockError

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document a line.")]

out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

STYLES = {
    "completed": "green",
    "executed": "green",
    "running": "cyan",
    "failed": "red",
    "timeout": "red",
    "abandoned": "red",
    "dead": "red",
    "cancelled": "yellow",
    "canceling": "yellow",
    "waiting": "magenta",
    "skipped": "dim",
}


def json_line(value: Any) -> None:
    """One JSON document on one line of standard output."""
    sys.stdout.write(orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "Nothing.") -> None:
    """A table, or one line saying that there is nothing to show."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    count = 0
    for row in rows:
        shown.add_row(*(text(value) for value in row))
        count += 1
    if count:
        out.print(shown)
    else:
        out.print(f"[dim]{empty}[/dim]")


def text(value: Any) -> str:
    """A value as people read it: times in UTC to the millisecond, lists by commas, statuses in colour."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    plain = str(value).replace("[", "\\[")
    style = STYLES.get(plain)
    return f"[{style}]{plain}[/{style}]" if style else plain


def complain(error: PenstockError) -> None:
    """The error and what to do next, on standard error."""
    err.print(f"[red]error:[/red] {text(error.message)}")
    if error.hint:
        err.print(f"[dim]hint:[/dim]  {text(error.hint)}")
