"""The literal durations in the code of actions that the call beside them refuses when it runs, such as `ctx.sleep("1 day")`.

A duration is a parameter that is annotated as `Span`, or a field of a policy. So a new method needs no entry here.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PlainValidator

from penstock.engine.durable.context import DurableContext
from penstock.engine.durable.lint import is_current
from penstock.language.definitions.event_paths import at_most_a_day
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms import durations
from penstock.run.context import RunContext, SyncRunContext
from penstock.run.durations import HINT, Span

Check = Callable[[object], float]
"""A function that raises ValueError for a value that is not accepted as a duration."""


@dataclass(frozen=True, slots=True)
class WrongDuration:
    """A literal that is refused as a duration: its file and line, the fault, and a hint."""

    file: str
    line: int
    message: str
    hint: str


def wrong_durations(functions: Iterable[Callable[..., Any]]) -> list[WrongDuration]:
    """Return the wrong literal durations in the files of these functions, which includes the functions that they call there.
    A file without source text is left out."""
    names_of_files = {}
    for function in functions:
        plain = inspect.unwrap(function)
        names_of_files[plain.__code__.co_filename] = plain.__globals__
    return [fault for file, names in names_of_files.items() for fault in _faults(file, names)]


def _faults(file: str, names: Mapping[str, Any]) -> Iterator[WrongDuration]:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for function in _outermost_functions(tree):
        contexts = _contexts(function, names)
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                yield from _of_call(file, node, _target(node.func, contexts, names))


def _outermost_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from _outermost_functions(node)


def _contexts(function: ast.AST, names: Mapping[str, Any]) -> dict[str, type]:
    """Return the names of a function for contexts: parameters that are annotated as one, and what `current()` is assigned to."""
    contexts: dict[str, type] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.annotation is not None:
            kind = _value(node.annotation, names)
            if isinstance(kind, type) and issubclass(kind, DurableContext | RunContext):
                contexts[node.arg] = kind
        elif isinstance(node, ast.Assign) and is_current(node.value, dict(names)):
            contexts |= {target.id: RunContext for target in node.targets if isinstance(target, ast.Name)}
    return contexts


def _target(node: ast.expr, contexts: Mapping[str, type], names: Mapping[str, Any]) -> Any:
    """Return what a call calls: a function or a class of the module, or a method of a context. None if it is not known."""
    if isinstance(node, ast.Attribute):
        context = _context_of(node.value, contexts, names)
        if context is not None:
            return getattr(context, node.attr, None)
    elif isinstance(node, ast.Name) and node.id in contexts:
        return None
    return _value(node, names)


def _context_of(node: ast.expr, contexts: Mapping[str, type], names: Mapping[str, Any]) -> type | None:
    """Return the class of the context that an expression gives; None if it gives none."""
    if isinstance(node, ast.Name):
        return contexts.get(node.id)
    if isinstance(node, ast.Attribute) and node.attr == "sync":
        return SyncRunContext if _context_of(node.value, contexts, names) is RunContext else None
    return RunContext if is_current(node, dict(names)) else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of a name, or of a name in a module. None if it is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _value(node.value, names)
        return getattr(module, node.attr, None) if inspect.ismodule(module) else None
    return None


def _of_call(file: str, call: ast.Call, target: Any) -> Iterator[WrongDuration]:
    """Yield the wrong durations among the arguments of a call, also inside of a literal policy."""
    checks, positions = _checks(target)
    arguments = [
        *((positions[place], value) for place, value in enumerate(call.args) if place < len(positions)),
        *((word.arg, word.value) for word in call.keywords if word.arg is not None),
    ]
    label = ast.unparse(call.func)
    for name, value in arguments:
        if name in checks:
            yield from _of_value(file, value, f"the {name} of `{label}`", checks[name])
        elif name == "retry" and isinstance(value, ast.Dict) and target is DurableContext.step:
            policy, _ = _checks(RetryPolicy)
            for key, part in zip(value.keys, value.values, strict=True):
                field = key.value if isinstance(key, ast.Constant) else None
                if isinstance(field, str) and field in policy:
                    yield from _of_value(file, part, f"the {field} of `{label}`", policy[field])


def _of_value(file: str, node: ast.expr, label: str, check: Check) -> Iterator[WrongDuration]:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if not isinstance(node, ast.Constant) or node.value is None:
        return
    value = node.value
    try:
        check(-value if sign < 0 and isinstance(value, int | float) else value)
    except ValueError as wrong:
        hint = getattr(wrong, "hint", None) or HINT
        yield WrongDuration(file, node.lineno, f"{label} {wrong}", hint)


def _checks(target: Any) -> tuple[Mapping[str, Check], tuple[str, ...]]:
    """Return the checks of the parameters that take a duration, and the names of the parameters by position."""
    try:
        return _checks_of(target)
    except TypeError:  # a value that cannot be a key of the cache is none of ours
        return {}, ()


@cache
def _checks_of(target: Any) -> tuple[Mapping[str, Check], tuple[str, ...]]:
    if isinstance(target, type) and issubclass(target, BaseModel):
        return dict(_checks_of_fields(target)), ()
    function = inspect.getattr_static(target, "__init__") if isinstance(target, type) else target
    if not inspect.isfunction(function) or function.__globals__.get("Span") is not Span:
        return {}, ()
    parameters = inspect.signature(function).parameters
    own = [name for name in parameters if name != "self"]
    checks = {name: _check_of(name) for name in own if "Span" in str(parameters[name].annotation)}
    return checks, tuple(own)


def _check_of(name: str) -> Check:
    if name in ("debounce", "at_most"):
        return lambda value: at_most_a_day(durations.positive_seconds(value))
    return durations.seconds


def _checks_of_fields(model: type[BaseModel]) -> Iterator[tuple[str, Check]]:
    for name, field in model.model_fields.items():
        for part in field.metadata:
            if isinstance(part, PlainValidator) and part.func in (
                durations.seconds,
                durations.positive_seconds,
            ):
                yield name, part.func
