"""docs/reference/logs.md: each event that services log, and each field of a line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.service import log_line_schema
from penstock.service.log_line_schema import Field

ROOT = Path(__file__).parents[2]
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
TYPES = {str: "text", int: "integer", float: "number", list: "list", dict: "object"}

HEAD = """# Logs

This page is written by `docs/written` from the code. Services write one line for each log event to standard error, as JSON, or
as text for a terminal (`PENSTOCK_LOG_FORMAT`). Lines of libraries have the same form: `event` is their text, and `logger` is the name of
their logger. The output and the logs of *actions* are stored with their executions instead (`penstock logs ID`).

    {"event": "worker.claim_lost", "level": "warning", "execution_id": "01a2...", "attempt": 1,
     "service": "worker", "replica": "web-3", "replica_id": "01a2...", "timestamp": "2026-11-22T10:00:00.000000Z"}

A field has the same meaning and the same type in all lines. Later versions may add fields.

**To search the logs** (Loki, Elasticsearch and others), select and count lines by `event`. In lines of Penstock the `event` is one of
the names below, and the changelog notes each change of a name. Lines of libraries have a `logger`, and a sentence as `event`. The fields
`service` and `level`, and `event` in lines without a `logger`, have few values, so they are suitable as labels or keywords. Names and ids
(`replica`, `execution_id`, `trace_id`) have many values, so leave them in the line. Addresses are logged without their passwords.

    {service="worker"} | json | event="worker.claim_lost" | execution_id="01a2..."
"""


@dataclass(frozen=True, slots=True)
class Logged:
    """A call of a logger: the event, its level, and the fields that it gives."""

    event: str
    level: str
    fields: tuple[str, ...]
    where: str


def logged() -> Iterator[Logged]:
    """Yield each call of a logger in the services, and in the packages that use Penstock."""
    for folder in ("common/penstock", "services", "extras"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if "log = structlog.get_logger(" in text:
                yield from _calls(ast.parse(text), path.relative_to(ROOT).as_posix())


def _calls(tree: ast.AST, name: str) -> Iterator[Logged]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) != "log" or node.func.attr not in LEVELS:
            continue
        event, where = ast.literal_eval(node.args[0]), f"{name}:{node.lineno}"
        fields = [keyword.arg or "**" for keyword in node.keywords]
        if node.func.attr == "exception" or "exc_info" in fields:
            fields = [*(field for field in fields if field != "exc_info"), "exception"]
        yield Logged(event, LEVELS[node.func.attr], tuple(fields), where)


def page() -> str:
    """Return the text of the page."""
    return "".join(
        [
            HEAD,
            "\n## Fields of every line\n\n",
            _table(log_line_schema.ALWAYS),
            "\n## Fields of the process and of libraries\n\n",
            _table(log_line_schema.OF_THE_PROCESS),
            "\n## Fields of a run\n\nLines have these fields if they are logged while an action runs, or are about an execution.\n\n",
            _table(log_line_schema.OF_A_RUN),
            "\n## Other fields\n\n",
            _table(log_line_schema.OF_AN_EVENT),
            "\n## Events\n\n| event | level | fields |\n|---|---|---|\n",
            *sorted({_event(one) for one in logged()}),
        ]
    )


def _table(fields: Mapping[str, Field]) -> str:
    rows = (f"| `{name}` | {TYPES[one.type]} | {one.description} |\n" for name, one in fields.items())
    return "| field | type | |\n|---|---|---|\n" + "".join(rows)


def _event(one: Logged) -> str:
    return f"| `{one.event}` | {one.level} | {', '.join(f'`{field}`' for field in sorted(one.fields))} |\n"
