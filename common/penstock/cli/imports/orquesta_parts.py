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
    given = source.get(key) or []
    if isinstance(given, str):
        given = [{name: value.strip("\"'")} for name, value in INLINE.findall(given)]
    for one in given if isinstance(given, list) else [given]:
        if isinstance(one, str):
            yield one, NOTHING, source.line(key)
        else:
            lines = one.lines if isinstance(one, Marked) else {}
            yield from ((name, value, lines.get(name, source.line(key))) for name, value in one.items())


def steps_of(task: Any) -> list[Marked]:
    return [step for step in (task or {}).get("next") or [] if isinstance(step, Marked)]


def names_of(do: Any) -> list[str]:
    return [one.strip() for one in do.split(",")] if isinstance(do, str) else list(do or [])


def reached(start: str, after: dict[str, set[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        new = after.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
