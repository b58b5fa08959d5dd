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

This page is written by `docs/written` from the code. Services log one event a line on standard error: JSON, or for people on a terminal
(`PENSTOCK_LOG_FORMAT`). What libraries log there has the same form, with their text as `event` and their `logger`. What *actions* print
and log is not here: it is kept with their executions (`penstock logs ID`).

    {"event": "worker.claim_lost", "level": "warning", "execution_id": "01a2...", "attempt": 1,
     "service": "worker", "replica": "web-3", "replica_id": "01a2...", "timestamp": "2026-11-22T10:00:00.000000Z"}

One name means one thing, of one type, in all lines; fields may be added.

**Searching them** (Loki, Elasticsearch and others): `event` is what a line is to be found and counted by. It is one of the names
below, which change only with the changelog, never a sentence; what a library said has a `logger`. So `service`, `level` and, where there is no
`logger`, `event` are few and fit as labels or keywords; names and ids (`replica`, `execution_id`, `trace_id`) are many, and belong into
the line. Addresses are logged without their passwords.

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
            "\n## Fields of a run\n\nIn whatever is logged while an action runs, and where a line is about an execution.\n\n",
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
