"""The conversion of Celery's chains, groups and chords to workflows, if their tasks and arguments are in the source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock_import.celery_calls import NotLiteral, Signature, called, literal, sent
from penstock_import.wanted_text import NotMapped, member

Resolve = Callable[[ast.expr], tuple[str, Signature] | None]
"""A function that returns the Penstock action and its parameters, for an expression that names a task."""
_CANVAS = frozenset({"chain", "group", "chord"})


@dataclass(slots=True)
class _Step:
    """A part of a canvas: its last tasks, and the expression for its value."""

    ends: list[str]
    value: str


@dataclass(slots=True)
class Canvas:
    """A builder for the workflow of one canvas. `parameters` are those of the function around it, with
    their schemas; the schema is None for a default that only running the code would tell."""

    resolve: Resolve
    parameters: Mapping[str, dict[str, Any] | None]
    used: set[str] = field(default_factory=set)
    tasks: dict[str, Any] = field(default_factory=dict)

    def workflow(self, node: ast.expr) -> dict[str, Any]:
        """Return the body of the workflow. Raises NotMapped for a part without an equivalent in Penstock, and
        NotLiteral for a value that is only known when the module runs."""
        last = self._part(_started(node), None)
        body: dict[str, Any] = {"parameters": {name: self.parameters[name] for name in sorted(self.used)}}
        return body | {"tasks": self.tasks, "output": _whole(last.value)}

    def _part(self, node: ast.expr, previous: _Step | None) -> _Step:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            _refuse_single_groups([node.left, node.right])
            first = self._part(node.left, previous)
            if _is_group(node.left):
                raise NotMapped("a group in front of a task, which becomes a chord")
            return self._part(node.right, first)
        if isinstance(node, ast.Call) and called(node) == "chain" and not node.keywords:
            parts = _list_of(node.args)
            _refuse_single_groups(parts)
            for number, part in enumerate(parts):
                if _is_group(part) and number < len(parts) - 1:
                    raise NotMapped("a group in front of a task, which becomes a chord")
                previous = self._part(part, previous)
            if previous is None:
                raise NotMapped("an empty chain")
            return previous
        if isinstance(node, ast.Call) and called(node) == "group" and not node.keywords:
            return self._group(_list_of(node.args), previous)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and called(node.func) == "chord":
            header, body = node.func.args, node.args
            if len(header) != 1 or len(body) != 1 or node.keywords or node.func.keywords:
                raise NotMapped("a chord of more than a header and a body")
            return self._part(body[0], self._group(_list_of(header), previous))
        if (
            isinstance(node, ast.Call)
            and called(node) == "chord"
            and not node.keywords
            and len(node.args) == 2
        ):
            return self._part(node.args[1], self._group(_list_of(node.args[:1]), previous))
        return self._task(node, previous)

    def _group(self, parts: list[ast.expr], previous: _Step | None) -> _Step:
        if not parts:
            raise NotMapped("an empty group")
        if any(_is_group(part) for part in parts):
            raise NotMapped("a group within a group, of which Celery makes one, in an order of its own")
        steps = [self._part(part, previous) for part in parts]
        ends = [end for step in steps for end in step.ends]
        return _Step(ends, f"[{', '.join(step.value for step in steps)}]")

    def _task(self, node: ast.expr, previous: _Step | None) -> _Step:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise NotMapped(f"{ast.unparse(node)} is not a signature")
        kind = node.func.attr
        hits = self.resolve(node.func.value)
        if hits is None or kind not in ("s", "si", "signature", "subtask"):
            raise NotMapped(f"{ast.unparse(node)} is not a signature of a task of this source")
        action, signature = hits
        args, kwargs, immutable = self._arguments(node, kind)
        supplied: dict[str, Any] = {}
        values: list[Any] = [self._value(argument) for argument in args]
        if previous is not None and not immutable:
            values.insert(0, _whole(previous.value))
        if len(values) > len(signature.names):
            raise NotMapped(f"more arguments by position than {action} has parameters")
        supplied |= dict(zip(signature.names, values, strict=False))
        for name, value in kwargs.items():
            if name in supplied:
                raise NotMapped(f"{name} of {action} twice")
            supplied[name] = self._value(value)
        name = action.rpartition(".")[2]
        while name in self.tasks:
            stem, _, number = name.rpartition("_")
            name = f"{stem}_{int(number) + 1}" if stem and number.isdigit() else f"{name}_2"
        task: dict[str, Any] = {"action": action}
        if supplied:
            task["input"] = supplied
        if previous is not None:
            task["needs"] = list(dict.fromkeys(previous.ends))
        self.tasks[name] = task
        return _Step([name], member("tasks", name) + ".result")

    def _arguments(self, node: ast.Call, kind: str) -> tuple[list[ast.expr], dict[str, ast.expr], bool]:
        if kind in ("s", "si"):
            if any(keyword.arg is None for keyword in node.keywords):
                raise NotMapped("arguments that are spread with **")
            return list(node.args), {str(word.arg): word.value for word in node.keywords}, kind == "si"
        options = {str(word.arg): word.value for word in node.keywords}
        if len(node.args) > 2 or options.keys() - {"args", "kwargs", "immutable"}:
            raise NotMapped("options of a signature")
        whole = dict(zip(("args", "kwargs"), node.args, strict=False)) | options
        args, kwargs = whole.get("args"), whole.get("kwargs")
        if not (args is None or isinstance(args, ast.Tuple | ast.List)) or not (
            kwargs is None
            or (isinstance(kwargs, ast.Dict) and all(isinstance(key, ast.Constant) for key in kwargs.keys))
        ):
            raise NotLiteral(ast.unparse(node))
        words: dict[str, ast.expr] = {}
        if isinstance(kwargs, ast.Dict):
            for key, value in zip(kwargs.keys, kwargs.values, strict=True):
                assert isinstance(key, ast.Constant)
                words[str(key.value)] = value
        immutable = "immutable" in options and literal(options["immutable"]) is True
        return list(args.elts) if args is not None else [], words, immutable

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Starred):
            raise NotMapped("arguments that are spread with *")
        if isinstance(node, ast.Name) and node.id in self.parameters:
            if self.parameters[node.id] is None:
                raise NotMapped(
                    f"the default of {node.id}, a parameter of the function around it, is computed"
                )
            self.used.add(node.id)
            return "{{ " + member("parameters", node.id) + " }}"
        value = literal(node)
        if not isinstance(value, str | int | float | bool | list | dict | None):
            raise NotMapped(f"a {type(value).__name__} as an argument")
        return sent(value)


def _whole(text: str) -> str:
    return "{{ " + text + " }}"


def _is_group(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "group"


def _refuse_single_groups(parts: list[ast.expr]) -> None:
    """Raise NotMapped for a group of one task in a chain. Celery runs the task itself, and its result is not a list."""
    for part in parts:
        if isinstance(part, ast.Call) and _is_group(part) and len(_list_of(part.args)) == 1:
            raise NotMapped("a group of one task in a chain, which Celery replaces by the task")


def _list_of(args: list[ast.expr]) -> list[ast.expr]:
    if len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple):
        args = args[0].elts
    if any(isinstance(arg, ast.Starred | ast.GeneratorExp | ast.ListComp | ast.Name) for arg in args):
        raise NotMapped("parts that only running would tell")
    return args


def is_canvas(node: ast.AST, names: Mapping[str, str]) -> bool:
    """Return whether an expression is a chain, a group or a chord. `names` are the imported names with their paths."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (node.left, node.right)
        return any(is_canvas(side, names) or _is_signature(side) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Call):
        return is_canvas(node.func, names)
    name = called(node)
    if name not in _CANVAS:
        return False
    if isinstance(node.func, ast.Name):
        return names.get(node.func.id, "").startswith("celery")
    return isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in ("celery", "canvas")


def _started(node: ast.expr) -> ast.expr:
    """Return the canvas that a call without arguments starts: `chain(...)` for `chain(...)()`. Raises NotMapped for a
    call with arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Call):
        return node
    if called(node.func) == "chord" and len(node.func.args) == 1 and not node.func.keywords:
        return node  # `chord(header)(body)`: the argument is the body, and starts nothing
    if node.args or node.keywords:
        raise NotMapped("a canvas that is started with arguments")
    return node.func


def _is_signature(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("s", "si")
    )
