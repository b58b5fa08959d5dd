"""The content of a Celery module: decorated functions, calls and literals, read from its source. None of it is run."""

from __future__ import annotations

import ast
import copy
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

from penstock_import.wanted_text import NotMapped

T = TypeVar("T")


def once(function: Callable[[ast.AST], T]) -> Callable[[ast.AST], T]:
    """Return a function that keeps its result for a module with the module, since each is asked for many times."""

    @wraps(function)
    def cached(tree: ast.AST) -> T:
        if not isinstance(tree, ast.Module):
            return function(tree)
        results: dict[str, T] = tree.__dict__.setdefault("results", {})
        key = f"{function.__module__}.{function.__name__}"
        if key not in results:
            results[key] = function(tree)
        return results[key]

    return cached


def forget(tree: ast.Module) -> None:
    """Drop the cached results for a module that was changed."""
    tree.__dict__.pop("results", None)


@once
def walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, in the order of `ast.walk`: parents come before their children."""
    nodes = [tree]
    for node in nodes:  # the list grows with the children of each node
        nodes += children(node)
    return nodes


def children(node: ast.AST) -> list[ast.AST]:
    """Return the direct parts of a node, as `ast.iter_child_nodes` yields them. A list takes half of its time."""
    parts: list[ast.AST] = []
    values = node.__dict__
    for name in node._fields:
        value = values.get(name)
        if isinstance(value, ast.AST):
            parts.append(value)
        elif isinstance(value, list):
            parts.extend([part for part in value if isinstance(part, ast.AST)])
    return parts


class NotLiteral(Exception):
    """Raised for a value that is only known when the module runs."""


def literal(node: ast.expr, constants: Mapping[str, ast.expr] | None = None) -> Any:
    """Return the value of a literal, or of arithmetic with numbers. A name may refer to a constant. Raises NotLiteral for
    any other expression."""
    if isinstance(node, ast.Name) and constants is not None and node.id in constants:
        return literal(
            constants[node.id], {name: value for name, value in constants.items() if name != node.id}
        )
    if isinstance(node, ast.Attribute) and constants is not None and ast.unparse(node) in constants:
        return literal(constants[ast.unparse(node)])
    if isinstance(node, ast.BinOp):
        first, second = literal(node.left, constants), literal(node.right, constants)
        if all(isinstance(side, int | float) and not isinstance(side, bool) for side in (first, second)):
            compute = _ARITHMETIC.get(type(node.op))
            with suppress(OverflowError, ZeroDivisionError):
                if compute is not None:
                    return compute(first, second)
        return _joined(node, first, second)
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part, constants) for part in node.values)
    if isinstance(node, ast.Call):
        return _text(node, constants) if called(node) == "format" else _number(node, constants)
    if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        with suppress(TypeError):  # the key is of a type that no dict accepts
            return {
                literal(key, constants): literal(value, constants) for key, value in pairs if key is not None
            }
    if isinstance(node, ast.List | ast.Tuple):
        items = [literal(item, constants) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise NotLiteral(text_of(node)) from None


_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"float": float, "int": int, "max": max, "min": min}


def _text(node: ast.Call, constants: Mapping[str, ast.expr] | None) -> str:
    """Return the text of `"*/{}".format(30)`, with texts and numbers in braces."""
    pattern = literal(node.func.value, constants) if isinstance(node.func, ast.Attribute) else None
    if isinstance(pattern, str) and not any(mark in _FIELD.sub("", pattern) for mark in "{}"):
        values = [literal(argument, constants) for argument in node.args]
        words = {str(word.arg): literal(word.value, constants) for word in node.keywords}
        with suppress(IndexError, KeyError, ValueError):
            if all(type(value) in (int, str) for value in [*values, *words.values()]):
                return pattern.format(*values, **words)
    raise NotLiteral(text_of(node))


_FIELD = re.compile(r"\{\w*\}")
"""A part of a pattern that `format` replaces by a value, without a width."""
_CONVERSION = re.compile(r"%(?:0?\d)?[dis]|%%|%\(\w+\)[dis]")


def _joined(node: ast.BinOp, first: Any, second: Any) -> str:
    """Return the text of `"*/" + "30"`, or of `"*/%s" % 30`. Raises NotLiteral for any other operation."""
    if isinstance(node.op, ast.Add) and isinstance(first, str) and isinstance(second, str):
        return first + second
    is_pattern = isinstance(first, str) and "%" not in _CONVERSION.sub("", first)
    if is_pattern and isinstance(node.op, ast.Mod):
        values = (
            second.values() if isinstance(second, dict) else second if isinstance(second, tuple) else [second]
        )
        with suppress(TypeError, ValueError, KeyError):
            if all(type(value) in (int, str) for value in values):
                return str(first % second)
    raise NotLiteral(text_of(node))


def _part(node: ast.expr, constants: Mapping[str, ast.expr] | None) -> str:
    """Return a part of an f-string as text. Raises NotLiteral for a value with a format, and for a value of another
    type than text and whole number."""
    if isinstance(node, ast.FormattedValue):
        value = literal(node.value, constants)
        if node.format_spec is None and node.conversion in (-1, 115) and type(value) in (int, str):
            return str(value)
    elif isinstance(node, ast.Constant):
        return str(node.value)
    raise NotLiteral(text_of(node))


def _number(node: ast.Call, constants: Mapping[str, ast.expr] | None) -> Any:
    """Return the value of `min`, `max`, `int` or `float` of numbers, or of the seconds of a `timedelta`."""
    if getattr(node.func, "id", "") == "str" and len(node.args) == 1 and not node.keywords:
        value = literal(node.args[0], constants)
        if type(value) in (int, str):
            return str(value)
    function = _FUNCTIONS.get(getattr(node.func, "id", ""))
    if function is not None and node.args and not node.keywords:
        numbers = [literal(argument, constants) for argument in node.args]
        is_one = len(numbers) == 1
        if all(type(number) in (int, float) for number in numbers) and is_one == (function in (int, float)):
            with suppress(OverflowError, ValueError):
                return function(*numbers)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_interval = isinstance(owner, ast.Call) and called(owner) == "timedelta"
    if owner is not None and is_interval and called(node) == "total_seconds" and not node.args:
        return float(seconds(owner, constants))
    raise NotLiteral(text_of(node))


def text_of(node: ast.expr) -> str:
    """Return an expression as text, or the reason why a setting in it has no value."""
    reasons = [str(part.__dict__["reason"]) for part in ast.walk(node) if "reason" in part.__dict__]
    return reasons[0] if reasons else ast.unparse(node)


class _Constants(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constant = self._constants.get(node.id)
        return (
            ast.copy_location(copy.deepcopy(constant), node) if isinstance(constant, ast.Constant) else node
        )


def with_constants(node: ast.expr, constants: Mapping[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression with constants replaced by their values."""
    replaced = _Constants(constants).visit(copy.deepcopy(node))
    assert isinstance(replaced, ast.expr)
    return replaced


class _LiteralDicts(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        names = [word.arg for word in node.keywords]
        if getattr(node.func, "id", "") != "dict" or node.args or not names or None in names:
            return node
        keys: list[ast.expr | None] = [
            ast.copy_location(ast.Constant(word.arg), word.value) for word in node.keywords
        ]
        values = [word.value for word in node.keywords]
        return ast.copy_location(ast.Dict(keys=keys, values=values), node)


def with_literal_dicts(tree: ast.Module) -> ast.Module:
    """Return a module with `dict(a=1)` replaced by `{"a": 1}`."""
    replaced = _LiteralDicts().visit(tree)
    assert isinstance(replaced, ast.Module)
    return replaced


def with_known_conditions(tree: ast.Module) -> ast.Module:
    """Return a module with `if USE_TZ:` replaced by its body, if a literal before it makes the condition true. The literal
    must be the only value of the name."""
    bound, literals, body = bound_names(tree), dict[str, bool](), list[ast.stmt]()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            literals |= {
                target.id: bool(statement.value.value)
                for target in statement.targets
                if isinstance(target, ast.Name) and bound[target.id] == 1
            }
        elif isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
            literals.clear()
        if isinstance(statement, ast.If) and not statement.orelse and _is_true(statement.test, literals):
            body += statement.body
        else:
            body.append(statement)
    tree.body = body
    forget(tree)
    return tree


def _is_true(test: ast.expr, literals: Mapping[str, bool]) -> bool:
    """Return whether a condition is a name with a true literal, or `not` before a name with a false one."""
    is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    named = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(named, ast.Name) and literals.get(named.id, is_negated) is not is_negated


_PLAIN_NAMES = frozenset(
    {"Celery", "chain", "chord", "crontab", "group", "schedule", "shared_task", "signature", "timedelta"}
)


class _PlainNames(ast.NodeTransformer):
    def __init__(self, plain: Mapping[str, str]) -> None:
        self._plain = plain

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._plain.get(node.id, node.id), node.ctx), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        for alias in node.names:
            if alias.asname in self._plain:
                alias.asname = None
        return node


def with_plain_names(tree: ast.Module) -> ast.Module:
    """Return a module in which names of Celery and of `datetime` are those of their packages: `crontab` for `ct` after
    `import crontab as ct`. A name that the module reads with another meaning as well stays."""
    aliases = [
        alias
        for node in walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] in ("celery", "datetime")
        for alias in node.names
        if alias.asname and alias.name in _PLAIN_NAMES
    ]
    if not aliases:
        return tree  # most modules: nothing else has to be counted
    bound = bound_names(tree)
    read = {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    plain = {
        str(alias.asname): alias.name
        for alias in aliases
        if bound[str(alias.asname)] == 1 and (not bound[alias.name] or alias.name not in read)
    }
    plain = {name: own for name, own in plain.items() if list(plain.values()).count(own) == 1}
    if not plain:
        return tree
    renamed = _PlainNames(plain).visit(tree)
    forget(tree)
    tree.__dict__["renamed"] = plain
    assert isinstance(renamed, ast.Module)
    return renamed


@once
def bound_names(tree: ast.AST) -> Counter[str]:
    """Return the number of places of a module that give a name a value, in any scope."""
    return Counter(_bound_names(tree))


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            yield node.name or ""


def task_decorator(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr | None:
    """Return the decorator that makes a function a task."""
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
        if name in ("task", "shared_task", "periodic_task"):
            return decorator
    return None


_UNITS = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}
_POSITIONS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")


def seconds(node: ast.expr, constants: Mapping[str, ast.expr] | None = None) -> float:
    """Return the seconds of a number or of a timedelta. Raises NotLiteral for a value that is only known when the
    module runs."""
    if node.__dict__.get("is_other_time"):
        raise NotLiteral(ast.unparse(node))
    if isinstance(node, ast.Call) and called(node) == "timedelta":
        parts = [
            *zip(_POSITIONS, node.args, strict=False),
            *((word.arg or "", word.value) for word in node.keywords),
        ]
        if all(name in _UNITS for name, _ in parts):
            amounts = [(literal(value, constants), _UNITS[name]) for name, value in parts]
            with suppress(OverflowError):
                if all(isinstance(amount, int | float) for amount, _ in amounts):
                    return float(sum(amount * unit for amount, unit in amounts))
    if isinstance(node, ast.BinOp) and any(
        isinstance(part, ast.Call) and called(part) == "timedelta" for part in ast.walk(node)
    ):
        with suppress(OverflowError, TypeError, ZeroDivisionError):
            interval = _interval(node, constants)
            if isinstance(interval, timedelta):
                return interval.total_seconds()
    value = literal(node, constants)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotLiteral(text_of(node))
    return value


def _interval(node: ast.expr, constants: Mapping[str, ast.expr] | None) -> timedelta | float:
    """Return the interval, or the number, that sums and products of intervals and numbers give."""
    if isinstance(node, ast.BinOp):
        compute = _ARITHMETIC.get(type(node.op))
        first, second = _interval(node.left, constants), _interval(node.right, constants)
        result = compute(first, second) if compute is not None else None
        if isinstance(result, timedelta | int | float):
            return result
        raise NotLiteral(text_of(node))
    if isinstance(node, ast.Call) and called(node) == "timedelta":
        return timedelta(seconds=seconds(node, constants))
    return seconds(node, constants)


def called(call: ast.Call) -> str:
    """Return the last name of the called function."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def namespace_node(call: ast.Call) -> ast.expr | None:
    """Return the prefix of settings that `config_from_object` or `Celery` is given; None without one."""
    words = {word.arg: word.value for word in call.keywords}
    is_fourth = called(call) == "config_from_object" and len(call.args) > 3
    return words.get("namespace", call.args[3] if is_fourth else None)


def namespace_of(call: ast.Call) -> str | None:
    """Return the prefix as Celery compares it: empty without one, and None where only running would tell."""
    prefix = namespace_node(call)
    if any(word.arg is None for word in call.keywords) or not isinstance(prefix, ast.Constant | None):
        return None
    return str(getattr(prefix, "value", None) or "").rstrip("_")


@dataclass(slots=True)
class Signature:
    """The parameters of a task. A bound task's `self` is left out."""

    names: list[str]
    schema: dict[str, dict[str, Any]] | None
    """The schema by parameter; None if the function accepts any parameters."""
    computed: list[str] = field(default_factory=list)
    """The parameters with a default that is not a literal."""
    named: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The schema by parameter, also of a function that accepts any parameters."""


def signature_of(function: ast.FunctionDef | ast.AsyncFunctionDef, bound: bool) -> Signature:
    """Return the parameters of a function."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr | None] = {}
    for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        defaults[argument.arg] = value
    if bound:
        positional = positional[1:]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = default
    names = [argument.arg for argument in positional]
    schema: dict[str, dict[str, Any]] = {}
    computed: list[str] = []
    for name in [*names, *(argument.arg for argument in arguments.kwonlyargs)]:
        if name not in defaults:
            schema[name] = {"required": True}
            continue
        supplied = defaults[name]
        try:
            plain = literal(supplied) if supplied is not None else None
            schema[name] = {"default": plain} if is_json(plain) else {}
            if not is_json(plain):
                computed.append(name)
        except NotLiteral:
            schema[name] = {}
            computed.append(name)
    takes_any = arguments.vararg is not None or arguments.kwarg is not None
    return Signature(names, None if takes_any else schema, computed, schema)


_CARRIED = frozenset({"Decimal", "UUID", "bytes", "date", "datetime", "time"})
"""The types beside those of JSON that Celery's own JSON delivers as they were sent."""


def carried_types(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.arg, str]]:
    """Yield each parameter of a function, and its annotation, if that names a type which only Celery's JSON delivers."""
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.annotation is not None and _CARRIED & set(_named_types(argument.annotation)):
            yield argument, ast.unparse(argument.annotation)


def _named_types(annotation: ast.AST) -> Iterator[str]:
    """Yield the last names of the types in an annotation, also in one that is a text."""
    if isinstance(annotation, ast.Attribute):
        yield annotation.attr
    elif isinstance(annotation, ast.Name):
        yield annotation.id
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).endswith("Literal"):
        return
    elif isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            yield from _named_types(ast.parse(annotation.value, mode="eval").body)
        except SyntaxError:
            return
    else:
        for part in ast.iter_child_nodes(annotation):
            yield from _named_types(part)


def is_json(value: Any) -> bool:
    """Return whether JSON keeps a value as it is, with all that is within it: no tuple, no key that is a number."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(is_json, [*value, *value.values()]))
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return _is_text(value)
    return value is None or isinstance(value, int)


def sent(value: Any) -> Any:
    """Return arguments of a task as Celery's JSON delivers them: a tuple is a list then, and a key a text. Raises
    NotMapped for a text with braces, and for a value that is not JSON."""
    if any(mark in str(value) for mark in ("{{", "{%", "{#")):
        raise NotMapped("a text with braces")
    try:
        delivered = json.loads(json.dumps(value))
    except (TypeError, ValueError):
        delivered = math.nan
    if not is_json(delivered):
        raise NotMapped("arguments that are not JSON")
    return delivered


def _is_text(value: str) -> bool:
    """Return whether PostgreSQL keeps a text: it has no zero character, and no half of a pair of code units."""
    return not any(mark == "\0" or "\ud800" <= mark <= "\udfff" for mark in value)


@once
def imported_names(tree: ast.AST) -> list[tuple[str, str]]:
    """Return each name that a module imports, with its full path."""
    return list(_imported_names(tree))


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    alias.asname or alias.name.partition(".")[0],
                    alias.name if alias.asname else alias.name.partition(".")[0],
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


def absolute_path(file: str, node: ast.ImportFrom) -> str:
    """Return the module that a statement imports from, below the folder that the names of files begin in."""
    if not node.level:
        return node.module or ""
    parts = file.removesuffix(".py").split("/")[: -node.level]
    return ".".join([*parts, *([node.module] if node.module else [])])


_OTHERS = frozenset(
    {
        "airflow", "arq", "asyncio", "background_task", "commander", "crewai", "dagster", "discord", "django_q", "django_rq",
        "django_tasks", "dramatiq", "fabric", "huey", "invoke", "locust", "nox", "prefect", "procrastinate", "pytest", "rq",
        "taskiq", "unittest",
    }
)  # fmt: skip
"""Packages with a decorator `task`, or one with such a word in its name, that is not Celery's."""
_OF_TASKS = re.compile(r"(?i)celery|(?:^|_)tasks?(?:_|$)")


def names_of_others(tree: ast.AST) -> frozenset[str]:
    """Return the names that a module imports from other systems with tasks."""
    return frozenset(name for name, path in imported_names(tree) if path.partition(".")[0] in _OTHERS)


def may_make_task(decorator: ast.expr, imported: Mapping[str, str]) -> bool:
    """Return whether a decorator of another package may make a task of Celery: its name or its module says so. `imported`
    are the paths of the names that the module imports."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    root = root_name(named)
    path = imported.get(root, root) + ast.unparse(named).removeprefix(root)
    package, last = path.partition(".")[0], path.rpartition(".")[2]
    is_of_celery = "celery" in path.lower() and package not in ("celery", "celery_once")
    return is_of_celery or (package not in _OTHERS and last != "task" and bool(_OF_TASKS.search(last)))


def root_name(node: ast.AST) -> str:
    """Return the first name of an expression: `a` for `a.b.c`."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
