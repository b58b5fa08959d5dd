"""The forms in which parts of an Orquesta workflow can be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from penstock.cli.imports.marked_yaml import Marked

INLINE = re.compile(r"""(\w+)=(<%.*?%>|\{\{.*?\}\}|"[^"]*"|'[^']*'|\S+)""")
NOTHING = object()


def pairs(source: Marked, key: str) -> Iterator[tuple[str, Any, int]]:
    """Yield name, value and line of pairs that are written as a list of names and small mappings, as a mapping, or as
    `a=1 b=2`."""
    entries = source.get(key) or []
    if isinstance(entries, str):
        entries = [{name: value.strip("\"'")} for name, value in INLINE.findall(entries)]
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, str):
            yield entry, NOTHING, source.line(key)
        else:
            lines = entry.lines if isinstance(entry, Marked) else {}
            yield from ((name, value, lines.get(name, source.line(key))) for name, value in entry.items())


def steps_of(task: Any) -> list[Marked]:
    return [step for step in (task or {}).get("next") or [] if isinstance(step, Marked)]


def names_of(do: Any) -> list[str]:
    return [name.strip() for name in do.split(",")] if isinstance(do, str) else list(do or [])


def reached(start: str, successors: dict[str, set[str]]) -> set[str]:
    names, waiting = {start}, [start]
    while waiting:
        new = successors.get(waiting.pop(), set()) - names
        names |= new
        waiting += new
    return names
