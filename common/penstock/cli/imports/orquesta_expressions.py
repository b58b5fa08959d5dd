"""Texts with expressions of StackStorm in them, YAQL in `<% %>` and Jinja in `{{ }}`, as templates and conditions of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.imports import jinja_expressions, yaql_expressions
from penstock.cli.imports.wanted_text import NotMapped, Ours, literal, member
from penstock.cli.imports.yaql_expressions import Names
from penstock.errors import DefinitionError
from penstock.language import expressions

__all__ = ["NotMapped", "OrquestaNames", "condition", "template"]

_BLOCK = re.compile(r"<%(.*?)%>|\{\{(.*?)\}\}", re.DOTALL)
_SPECIAL = re.compile(r"\{\{|\{%|\{#")
PLAIN, OF_WORKFLOW, UNKNOWN = "plain", "workflow", "unknown"
"""The shape of what a task gives: the value itself; a workflow's, which StackStorm wraps as `output`; not known."""


@dataclass(slots=True)
class OrquestaNames:
    """The names that an expression of a workflow sees in one place."""

    place: str
    """`start` for variables, `task` for inputs and lists, `end` for conditions and what is published, `output`."""
    variables: Collection[str]
    """All names that the context may have."""
    inlined: Mapping[str, Ours] = field(default_factory=dict)
    """Names that stand for an expression: of variables in front of this one."""
    shapes: Mapping[str, str] = field(default_factory=dict)
    """The shape of the result of each task."""
    task: str | None = None
    may_have_failed: bool = False
    """True at the end of a task: it may have failed, and a failed task has no result in Penstock."""
    has_items: bool = False
    read: set[str] = field(default_factory=set)
    """The names of the context that were read."""

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return what a name of Orquesta is here, and the number of steps that it covers. Raises NotMapped."""
        if function == "ctx":
            return self._context(argument, steps)
        if function == "item" and self.place == "task":
            return (Ours("item"), 0) if argument is None else (Ours(member("item", argument)), 0)
        if function in ("succeeded", "failed", "completed") and self.place == "end" and argument is None:
            return Ours({"succeeded": "succeeded()", "failed": "failed()"}.get(function, "true"), "bool"), 0
        if function == "result" and self.place == "end" and argument is None and self.task is not None:
            if self.may_have_failed:
                raise NotMapped("the result of a task that failed, which has an `error` here and no result")
            return self._result(Ours("result", "list" if self.has_items else ""), self.task, steps)
        if function == "task" and steps[:1] == ["result"] and self.place != "start":
            if self.place == "end" and argument in (None, self.task):
                value, covered = self.root("result", None, steps[1:])
                return value, covered + 1
            if argument is None or argument == self.task or argument not in self.shapes:
                raise NotMapped(f"the result of the task {argument}")
            value, covered = self._result(Ours(member("tasks", argument) + ".result"), argument, steps[1:])
            return value, covered + 1
        raise NotMapped(f"`{function}` has no equal here")

    def _context(self, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        name, covered = (argument, 0) if argument is not None else (steps[0] if steps else None, 1)
        if name is None:
            raise NotMapped("the whole context")
        if name in self.inlined:
            return self.inlined[name], covered
        if name not in self.variables:
            raise NotMapped(f"`{name}` is no input, no variable, and is published nowhere")
        self.read.add(name)
        return Ours(member("parameters" if self.place == "start" else "context", name)), covered

    def _result(self, value: Ours, task: str, steps: Sequence[str]) -> tuple[Ours, int]:
        shape = self.shapes.get(task, UNKNOWN)
        if shape == UNKNOWN:
            raise NotMapped(f"the result of {task}, whose action is not known")
        if shape == PLAIN:
            return value, 0
        if steps[:1] != ["output"] or value.kind == "list":
            raise NotMapped(f"the result of the workflow {task} beside its `output`")
        return value, 1


def condition(text: Any, names: Names) -> str:
    """Return a `when` of Orquesta as a condition of ours. Raises NotMapped."""
    if not isinstance(text, str):
        return "true" if text else "false"
    blocks = _blocks(text)
    if not blocks:
        return "true" if text else "false"
    if len(blocks) != 1 or blocks[0].span() != (0, len(text)):
        raise NotMapped("a condition with text beside its expression")
    ours = _translated(blocks[0], names)
    written = ours.text if ours.kind == "bool" else f"(true if {ours.text} else false)"
    return _checked(expressions.condition, _bare(written))


def template(value: Any, names: Names) -> Any:
    """Return a value with expressions in its texts as ours. Raises NotMapped."""
    if isinstance(value, dict):
        if any(isinstance(name, str) and (_blocks(name) or "{%" in name) for name in value):
            raise NotMapped("a key that is computed")
        return {_plain(str(name)): template(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [template(item, names) for item in value]
    if not isinstance(value, str):
        return value
    blocks = _blocks(value)
    if not blocks:
        if "{%" in value:
            raise NotMapped("a block of Jinja")
        return _plain(value)
    if len({block[1] is None for block in blocks}) > 1 or "{%" in value:
        raise NotMapped("YAQL and Jinja, or a block of Jinja, in one text")
    text, at = "", 0
    for block in blocks:
        ours = _translated(block, names)
        if ours.kind == "lazy" and block.span() != (0, len(value)):
            raise NotMapped("a lazy list within a text")
        text += _plain(value[at : block.start()]) + "{{ " + _bare(ours.text) + " }}"
        at = block.end()
    return _checked(expressions.compile_template, text + _plain(value[at:]))


def as_expression(value: Any, names: Names) -> Ours:
    """Return a value with expressions in its texts as one expression. Raises NotMapped."""
    if isinstance(value, dict):
        template(value, names)
        pairs = ", ".join(
            f"{literal(str(name)).text}: {as_expression(item, names).text}" for name, item in value.items()
        )
        return Ours(f"{{{pairs}}}", "dict")
    if isinstance(value, list):
        return Ours(f"[{', '.join(as_expression(item, names).text for item in value)}]", "list")
    if not isinstance(value, str) or not _blocks(value):
        template(value, names)
        return literal(value)
    template(value, names)
    blocks = _blocks(value)
    if len(blocks) == 1 and blocks[0].span() == (0, len(value)):
        return _translated(blocks[0], names)
    parts, at = [], 0
    for block in blocks:
        parts += [literal(value[at : block.start()]).text, _translated(block, names).text]
        at = block.end()
    return Ours(f"({' ~ '.join([*parts, literal(value[at:]).text])})", "str")


def _blocks(text: str) -> list[re.Match[str]]:
    return list(_BLOCK.finditer(text))


def _translated(block: re.Match[str], names: Names) -> Ours:
    if "\n" in block[0]:
        raise NotMapped("an expression over several lines, which StackStorm leaves as text")
    if block[1] is not None:
        return yaql_expressions.translate(block[1], names)
    return jinja_expressions.translate(block[2], names)


def _plain(text: str) -> str:
    """Return text that a template of ours leaves as it is."""
    return "{{ " + literal(text).text + " }}" if _SPECIAL.search(text) else text


def _bare(text: str) -> str:
    """Return the text without a pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth, quote, at = 0, "", 0
    while at < len(text):
        mark = text[at]
        if quote:
            at += mark == "\\"
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        elif mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if depth == 0 and at < len(text) - 1:
                return text
        at += 1
    return text[1:-1]


def _checked(compiled: Callable[[str], object], ours: str) -> str:
    try:
        compiled(ours)
    except DefinitionError as error:
        raise NotMapped(f"it is refused here: {error}") from None
    return ours
