"""The output of commands: tables for people, JSON lines for programs (`--json`)."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_type_hints
from uuid import UUID

import orjson
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from penstock.errors import PenstockError
from penstock.language.terms.visible_text import visible, visible_json

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document a line.")]
"""The option `--json` of a command, as the type of its parameter."""

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
"""The types of values that must not be broken over two lines."""
TREE = " │├└─*"
"""The characters that may precede a name in a tree."""
ENDLESS = 10_000
"""The width of a file or a pipe in columns. Programs read it, so lines are not folded."""


class VisibleConsole(Console):
    """The console through which all texts of commands reach the terminal. Control characters are shown as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print for a line or a cell of a table. The width is measured with it too."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to write. Objects other than strings, such as JSON in colours, do not pass through
        `render_str`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Print a JSON document in colours. Control characters become JSON escapes."""
        super().print_json(None if json is None else visible_json(json), **options)


out = VisibleConsole(soft_wrap=True, emoji=False, width=None if sys.stdout.isatty() else ENDLESS)
err = VisibleConsole(stderr=True, soft_wrap=True, emoji=False)
"""The consoles of standard output and of standard error."""


def json_line(value: Any) -> None:
    """Print a JSON document on one line of standard output. The fields of rows have the form that the API gives them."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
    document = orjson.dumps(value, default=_plain, option=options).decode()
    sys.stdout.write(visible_json(document) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value):
        serializers = _serializers(cast(type, type(value)))
        fields_of_value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: serializers.get(name, _as_it_is)(item) for name, item in fields_of_value.items()}
    return str(value)


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _serializers(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    """Return the serializers in the annotations of a dataclass, by field."""
    from pydantic import PlainSerializer  # heavy, and only JSON of rows needs it

    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:  # a name that is imported for type checkers alone
        return {}
    return {
        name: cast(Callable[[Any], Any], mark.func)
        for name, hint in hints.items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, PlainSerializer)
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "Nothing.") -> None:
    """Print a table, or the line `empty` if there are no rows."""
    values = [tuple(row) for row in rows]
    if not values:
        out.print(f"[dim]{escape(empty)}[/dim]")
        return
    print_whole(grid(columns, values))


def listing(
    columns: Sequence[str],
    rows: Iterable[T],
    cells: Callable[[T], Sequence[Any]],
    *,
    json: bool,
    document: Callable[[T], Any] | None = None,
    empty: str = "Nothing.",
) -> None:
    """Print the rows as a table, or with `json` a JSON document a line: the row itself, or what `document` returns for it."""
    if json:
        for row in rows:
            json_line(row if document is None else document(row))
    else:
        table(columns, map(cells, rows), empty=empty)


def table_with_notes(
    column: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[Any]
) -> None:
    """Print a table with a last column, `column`, of notes: a sentence or None for each row. In a narrow terminal a note is on a
    line of its own below its row."""
    whole = grid([*columns, column], [(*row, note) for row, note in zip(rows, notes, strict=True)])
    if Measurement.get(out, out.options.update(max_width=ENDLESS), whole).maximum <= out.width:
        print_whole(whole)
        return
    rendered = grid(columns, rows)
    for cells in rendered.columns:
        cells.no_wrap = True  # a row is one line, so that the notes are below their rows
    widest = out.options.update(max_width=ENDLESS)
    head, *lines = out.render_lines(rendered, widest, pad=False)
    out.print(Segments([*head, Segment.line()]))
    for line, note in zip(lines, notes, strict=True):
        out.print(Segments([*line, Segment.line()]))
        if note is not None:
            out.print(Padding(text(note), (0, 0, 0, 4)), soft_wrap=False)


def print_whole(rendered: Table) -> None:
    """Print a table. If names, ids and times are too wide for the terminal, lines overflow, since names are not
    broken. No line ends in blanks: a single long cell would pad the lines of all other rows in a file."""
    endless = out.options.update(max_width=ENDLESS)
    width = max(out.width, Measurement.get(out, endless, rendered).minimum)
    lines = out.render_lines(rendered, endless.update(max_width=width), pad=False)
    out.print(Segments([segment for line in lines for segment in (*_unpadded(line), Segment.line())]), end="")


def _unpadded(line: Sequence[Segment]) -> list[Segment]:
    """Return the segments of a line without the blanks at its end."""
    segments = list(line)
    while segments and not segments[-1].text.strip(" "):
        segments.pop()
    if segments:
        segments[-1] = segments[-1]._replace(text=segments[-1].text.rstrip(" "))
    return segments


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table without printing it."""
    rendered = Table(box=None, pad_edge=False, header_style="bold")
    for n, column in enumerate(columns):
        values = [row[n] for row in rows]
        whole = any(isinstance(value, WHOLE) for value in values) or all(map(_is_name, values))
        rendered.add_column(column, overflow="fold", no_wrap=whole)
    for row in rows:
        rendered.add_row(*map(text, row))
    return rendered


def _is_name(value: Any) -> bool:
    """Return whether a cell is one word, possibly in a tree, or empty."""
    return value is None or (isinstance(value, str) and " " not in value.strip(TREE))


def fields(values: Mapping[str, Any]) -> None:
    """Print names and values, one a line. A value of None is left out."""
    rendered = Table(box=None, pad_edge=False, show_header=False)
    rendered.add_column(style="dim", no_wrap=True)
    rendered.add_column(overflow="fold")
    for name, value in values.items():
        if value is not None:
            rendered.add_row(name, text(value))
    out.print(rendered)


def text(value: Any) -> str:
    """Return a value as text for people: times in UTC to the millisecond, lists separated by commas, statuses in
    colour."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
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
    """Return a duration in two or three digits: 35 ms, 1.2 s, 5 min, 3 h, 2 d."""
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
    """Return the age of an instant, such as `12 s ago`, or an empty text for None."""
    if at is None:
        return ""
    from penstock.cli import clock  # only ages need it, and it imports the store

    return f"{span(max(timedelta(0), clock.noted() - at))} ago"


def complain(error: PenstockError) -> None:
    """Print the error, its remedy, and where to read more, on standard error."""
    err.print(f"[red]error:[/red] {escape(error.message)}")
    if error.hint:
        from penstock.service.explain_errors import more_of  # heavy, and only an error needs it

        err.print(f"[dim]hint:[/dim]  {escape(error.hint)}")
        err.print(f"[dim]more:[/dim]  {more_of(error)}", highlight=False)
