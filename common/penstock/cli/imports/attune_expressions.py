"""Expressions of Attune as ours: parsed into a tree, and written again from it. What has no equal here is not mapped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from penstock.cli.imports.jinja_expressions import COMPARING
from penstock.errors import DefinitionError
from penstock.language import expressions

_PARSER = Environment(autoescape=False)  # it parses alone
_CALCULATED = {nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*", nodes.Div: "/", nodes.Mod: "%"}
_OF_END = frozenset({"succeeded", "failed", "timed_out"})
_FILTERS = {"length": "length", "lower": "lower", "upper": "upper", "string": "string", "int": "int"}
_BLOCK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


class NotMapped(Exception):
    """An expression that has no equal here. Its text says which part."""


class AttuneExpressions:
    """The expressions of one place: `names` are the names that may stand there, and what they are called here.

    A name is mapped by its longest known beginning: `event.payload` before `event`."""

    def __init__(self, names: Mapping[str, str], lists: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._lists = lists
        """Tasks that run for each item of a list: their result is a list here, and is not there."""
        self.secrets: set[str] = set()

    def condition(self, text: Any) -> str:
        """Return a condition of ours, for text with or without its braces. Raises NotMapped."""
        if not isinstance(text, str):
            raise NotMapped(str(text))
        match = _BLOCK.fullmatch(text.strip())
        ours = self._written(match[1] if match else text)
        return _checked(expressions.condition, ours)

    def template(self, value: Any, *, missing: bool = False) -> Any:
        """Return a value with its texts rendered here. `missing`: a path that leads nowhere is null, or nothing within a text.
        Raises NotMapped."""
        if isinstance(value, Mapping):
            return {str(name): self.template(item, missing=missing) for name, item in value.items()}
        if isinstance(value, list):
            return [self.template(item, missing=missing) for item in value]
        if not isinstance(value, str) or "{{" not in value:
            if isinstance(value, str) and ("{%" in value or "{#" in value):
                raise NotMapped(value)
            return value
        whole = _BLOCK.fullmatch(value.strip())
        alone = whole is not None and "}}" not in whole[1]
        parts: list[str] = []
        end = 0
        for match in _BLOCK.finditer(value):
            ours = self._written(match[1])
            if missing:
                ours = f"{ours} | default({'none' if alone else json.dumps('')})"
            parts += [value[end : match.start()], "{{ " + ours + " }}"]
            end = match.end()
        text = "".join([*parts, value[end:]])
        if "{%" in text or "{#" in text:
            raise NotMapped(value)
        return _checked(expressions.compile_template, text.strip() if alone else text)

    def _written(self, text: str) -> str:
        try:
            tree = _PARSER.parse("{{ " + text + " }}")
        except TemplateSyntaxError:
            raise NotMapped(text.strip()) from None
        match tree.body:
            case [nodes.Output(nodes=[node])] if not isinstance(node, nodes.TemplateData):
                return self._of(node)
        raise NotMapped(text.strip())

    def _of(self, node: nodes.Node) -> str:
        match node:
            case nodes.Const(value=value):
                return _constant(value)
            case nodes.List(items=items):
                return "[" + ", ".join(self._of(item) for item in items) + "]"
            case nodes.Not(node=inner):
                return f"(not {self._of(inner)})"
            case nodes.And(left=left, right=right):
                return f"({self._of(left)} and {self._of(right)})"
            case nodes.Or(left=left, right=right):
                return f"({self._of(left)} or {self._of(right)})"
            case nodes.Compare(expr=left, ops=[nodes.Operand(op=op, expr=right)]) if op in COMPARING:
                return f"({self._of(left)} {COMPARING[op]} {self._of(right)})"
            case nodes.BinExpr(left=left, right=right) if type(node) in _CALCULATED:
                return f"({self._of(left)} {_CALCULATED[type(node)]} {self._of(right)})"
            case nodes.Call(node=nodes.Name(name=name), args=args, kwargs=[], dyn_args=None, dyn_kwargs=None):
                return self._call(name, args)
            case nodes.Name() | nodes.Getattr() | nodes.Getitem():
                return self._path(node)
        raise NotMapped(type(node).__name__)

    def _call(self, name: str, args: list[nodes.Expr]) -> str:
        if name in _OF_END and not args and name in self._names:
            return f"{name}()"
        if name == "result" and not args and name in self._names:
            return "result"
        if name in _FILTERS and len(args) == 1:
            return f"({self._of(args[0])} | {_FILTERS[name]})"
        if name == "contains" and len(args) == 2:
            return f"({self._of(args[1])} in {self._of(args[0])})"
        raise NotMapped(f"{name}()")

    def _path(self, node: nodes.Node) -> str:
        steps: list[str | int] = []
        while not isinstance(node, nodes.Name):
            match node:
                case nodes.Getattr(node=inner, attr=attr):
                    steps.insert(0, attr)
                    node = inner
                case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as value)):
                    steps.insert(0, value)
                    node = inner
                case nodes.Call(node=nodes.Name(name="result"), args=[]) if "result" in self._names:
                    return "result" + "".join(_step(step) for step in steps)
                case _:
                    raise NotMapped(type(node).__name__)
        whole = [node.name, *steps]
        if (
            node.name == "keystore"
            and "keystore" in self._names
            and len(whole) == 2
            and isinstance(whole[1], str)
        ):
            self.secrets.add(whole[1])
            return f"secrets.{whole[1]}"
        if node.name == "task" and "task" in self._names:
            return self._task(whole)
        for length in range(len(whole), 0, -1):
            beginning = ".".join(str(part) for part in whole[:length])
            if beginning in self._names:
                return self._names[beginning] + "".join(_step(step) for step in whole[length:])
        raise NotMapped(".".join(map(str, whole)))

    def _task(self, whole: list[str | int]) -> str:
        if len(whole) < 3 or whole[2] != "result" or whole[1] in self._lists:
            raise NotMapped(".".join(map(str, whole)))
        return f"tasks{_step(whole[1])}.result" + "".join(_step(step) for step in whole[3:])


def _step(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{json.dumps(step)}]"


def _constant(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False)


def constant(value: Any) -> str:
    """Return a literal of ours for a JSON value. Raises NotMapped for what is none."""
    if isinstance(value, list):
        return "[" + ", ".join(constant(item) for item in value) + "]"
    if isinstance(value, Mapping):
        raise NotMapped(str(value))
    return _constant(value)


def _checked(check: Any, ours: str) -> str:
    try:
        check(ours)
    except DefinitionError as error:
        raise NotMapped(f"{ours}: {error.message}") from None
    return ours
