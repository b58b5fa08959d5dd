"""The output of commands: tables for people, JSON lines for programs (`--json`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from penstock.errors import PenstockError
from penstock.language.terms.visible_text import visible, visible_json
from penstock.service.explain_errors import more_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document a line.")]

STYLES = {
    "completed": "green",
    "executed": "green",
    "matched": "green",
    "active": "green",
    "ok": "green",
    "mended": "green",
    "running": "cyan",
    "scheduled": "cyan",
    "failed": "red",
    "timeout": "red",
    "abandoned": "red",
    "dead": "red",
    "bad": "red",
    "VIOLATED": "red",
    "left": "red",
    "no mend": "red",
    "proposed": "yellow",
    "warning": "yellow",
    "cancelled": "yellow",
    "canceling": "yellow",
    "disabled": "yellow",
    "waiting": "magenta",
    "skipped": "dim",
}
WHOLE = (UUID, datetime, timedelta, int, float)
"""Values that are of no use when they are broken over two lines."""
TREE = " │├└─*"
"""What stands before a name in a tree."""
ENDLESS = 10_000
"""Columns of a file or a pipe: what programs read is not folded."""


class VisibleConsole(Console):
    """The way of every text of a command to a terminal: what would steer the terminal is shown as an escape."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print, of a line or a cell of a table. Its width is measured by the same method."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is written. A renderable that is no string, such as JSON in colours, does not pass `render_str`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Print a JSON document in colours. What would steer the terminal is an escape of JSON."""
        super().print_json(None if json is None else visible_json(json), **options)


out = VisibleConsole(soft_wrap=True, emoji=False, width=None if sys.stdout.isatty() else ENDLESS)
err = VisibleConsole(stderr=True, soft_wrap=True, emoji=False)


def json_line(value: Any) -> None:
    """One JSON document on one line of standard output."""
    document = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    sys.stdout.write(visible_json(document) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "Nothing.") -> None:
    """A table, or one line saying that there is nothing to show."""
    values = [tuple(row) for row in rows]
    if not values:
        out.print(f"[dim]{escape(empty)}[/dim]")
        return
    print_whole(grid(columns, values))


def print_whole(rendered: Table) -> None:
    """Print a table. Where names, ids and times are too much for the terminal, lines go over its edge: no name is broken."""
    width = out.width
    out.width = max(width, Measurement.get(out, out.options.update(max_width=ENDLESS), rendered).minimum)
    out.print(rendered)
    out.width = width


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table that is not printed yet."""
    rendered = Table(box=None, pad_edge=False, header_style="bold")
    for n, column in enumerate(columns):
        values = [row[n] for row in rows]
        whole = any(isinstance(value, WHOLE) for value in values) or all(map(_is_name, values))
        rendered.add_column(column, overflow="fold", no_wrap=whole)
    for row in rows:
        rendered.add_row(*map(text, row))
    return rendered


def _is_name(value: Any) -> bool:
    """One word, perhaps within a tree; or nothing."""
    return value is None or (isinstance(value, str) and " " not in value.strip(TREE))


def fields(values: Mapping[str, Any]) -> None:
    """Names and values, one a line; what is None is left out."""
    rendered = Table(box=None, pad_edge=False, show_header=False)
    rendered.add_column(style="dim", no_wrap=True)
    rendered.add_column(overflow="fold")
    for name, value in values.items():
        if value is not None:
            rendered.add_row(name, text(value))
    out.print(rendered)


def text(value: Any) -> str:
    """A value as people read it: times in UTC to the millisecond, lists by commas, statuses in colour."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(text, value))
    if isinstance(value, dict):
        value = orjson.dumps(value, default=_plain).decode()
    plain = escape(str(value))
    style = STYLES.get(plain)
    return f"[{style}]{plain}[/{style}]" if style else plain


def span(length: timedelta) -> str:
    """A length of time in two or three digits: 35 ms, 1.2 s, 5 min, 3 h, 2 d."""
    seconds = length.total_seconds()
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for unit, size, limit in (("s", 1, 100), ("min", 60, 100 * 60), ("h", 3600, 48 * 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def age(at: datetime | None) -> str:
    """Return the age of an instant, such as `12 s ago`; empty where there is none."""
    return "" if at is None else f"{span(max(timedelta(0), datetime.now(UTC) - at))} ago"


def complain(error: PenstockError) -> None:
    """The error, what to do next, and where there is more, on standard error."""
    err.print(f"[red]error:[/red] {escape(error.message)}")
    if error.hint:
        err.print(f"[dim]hint:[/dim]  {escape(error.hint)}")
        err.print(f"[dim]more:[/dim]  {more_of(error)}", highlight=False)
