"""The faults in the code of actions: calls without `await`, and in durable functions time, chance and the outside world, which
belong into steps."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.engine.durable.context import DurableContext
from penstock.language.terms.options import did_you_mean
from penstock.run.context import RunContext

USE = {
    "time": "ctx.now(), and ctx.sleep() to wait",
    "datetime": "ctx.now()",
    "date": "ctx.now()",
    "random": "ctx.random()",
    "secrets": "ctx.random(), or a step",
    "uuid": "ctx.uuid()",
    "os": "a step: ctx.step(name, function)",
    "requests": "a step: ctx.step(name, function)",
    "httpx": "a step: ctx.step(name, function)",
    "urllib": "a step: ctx.step(name, function)",
    "aiohttp": "a step: ctx.step(name, function)",
    "socket": "a step: ctx.step(name, function)",
    "subprocess": "a step: ctx.step(name, function)",
}
"""The replacement for calls into each of these modules."""
CALLS = {
    "asyncio.sleep": "ctx.sleep()",
    "asyncio.wait_for": "ctx.timeout(...), or ctx.first(a=..., b=...)",
    "asyncio.timeout": "ctx.timeout(...)",
    "asyncio.timeout_at": "ctx.timeout(...)",
    "asyncio.wait": "ctx.first(a=..., b=...), or asyncio.gather",
    "asyncio.as_completed": "ctx.first(a=..., b=...), or asyncio.gather",
    "asyncio.to_thread": "ctx.step(name, function)",
    "open": "a step: ctx.step(name, function)",
    "input": "ctx.ask()",
}
INSTEAD_OF_METHODS = {
    name: f"Write a step that calls current().{name}(...), with a key: ctx.step(name, function)."
    for name in ("start", "publish")
}
"""The hints for methods of `current()` that the context does not have."""
CURRENT = frozenset({"penstock.current", "penstock.run.context.current"})
"""The full names of the function that returns the context of the running attempt."""
HARMLESS = frozenset({"datetime.timedelta", "datetime.datetime.fromisoformat", "uuid.UUID", "os.path.join"})


@dataclass(frozen=True, slots=True)
class Nondeterminism:
    """A call that may return something else in the next attempt: its file and line, and the replacement."""

    file: str
    line: int
    call: str
    instead: str


def nondeterminism(function: Callable[..., Any]) -> list[Nondeterminism]:
    """Return the nondeterminism in the function itself. The functions that it passes to ctx.step may do anything, and
    the functions that it calls are not examined. Empty for a function without source text."""
    plain = inspect.unwrap(function)
    tree, first = _parsed(plain)
    if tree is None:
        return []
    names = plain.__globals__
    return [
        Nondeterminism(plain.__code__.co_filename, first + call.lineno - 1, f"{name}()", instead)
        for call, name in _calls(tree, names)
        if (instead := _instead(name)) is not None
    ]


@dataclass(frozen=True, slots=True)
class UnknownMethod:
    """A use of the context by a name that it does not have: its file and line, the name, and a hint."""

    file: str
    line: int
    name: str
    hint: str


def unknown_methods(function: Callable[..., Any]) -> list[UnknownMethod]:
    """Return the uses of the context by names that DurableContext does not have. Empty for a function without source text."""
    plain = inspect.unwrap(function)
    tree, first = _parsed(plain)
    if tree is None:
        return []
    context = _function(tree).args.args[0].arg
    methods = {name for name in dir(DurableContext) if not name.startswith("_")}
    return [
        UnknownMethod(
            plain.__code__.co_filename,
            first + node.lineno - 1,
            f"{context}.{node.attr}",
            INSTEAD_OF_METHODS.get(node.attr) or did_you_mean(node.attr, methods) or "",
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == context
        and not hasattr(DurableContext, node.attr)
    ]


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call without `await`, so that its coroutine does nothing: its file and line, and its text."""

    file: str
    line: int
    call: str


def lost_calls(function: Callable[..., Any], *, durable: bool) -> list[LostCall]:
    """Return the statements of an async function that call a method of `current()`, or of the context of a durable function,
    without `await`. Empty for a function without source text."""
    plain = inspect.unwrap(function)
    if not inspect.iscoroutinefunction(plain):
        return []
    tree, first = _parsed(plain)
    if tree is None:
        return []
    names = plain.__globals__
    contexts: dict[str, type] = {_function(tree).args.args[0].arg: DurableContext} if durable else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_current(node.value, names):
            contexts |= {target.id: RunContext for target in node.targets if isinstance(target, ast.Name)}
    return [
        LostCall(plain.__code__.co_filename, first + node.lineno - 1, ast.unparse(node.value.func))
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(method := node.value.func, ast.Attribute)
        and _returns_coroutine(getattr(_context_of(method.value, contexts, names), method.attr, None))
    ]


def _returns_coroutine(method: Any) -> bool:
    """Return True for an async method, and for a plain method that is annotated as one that returns a coroutine."""
    annotation = getattr(method, "__annotations__", {}).get("return")
    return inspect.iscoroutinefunction(method) or str(annotation).startswith("Coroutine[")


def _context_of(node: ast.expr, contexts: Mapping[str, type], names: dict[str, Any]) -> type | None:
    """Return the class of the context that an expression gives; None if it gives none."""
    if isinstance(node, ast.Name):
        return contexts.get(node.id)
    return RunContext if is_current(node, names) else None


def is_current(node: ast.expr, names: dict[str, Any]) -> bool:
    """Return True for a call of `penstock.current`."""
    return isinstance(node, ast.Call) and _called(node.func, names) in CURRENT


def _parsed(plain: Callable[..., Any]) -> tuple[ast.Module | None, int]:
    """Return the tree of a function and its first line. The tree is None for a function without source text."""
    try:
        lines, first = inspect.getsourcelines(plain)
        return ast.parse(textwrap.dedent("".join(lines))), first
    except (OSError, SyntaxError):
        return None, 0


def _function(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef:
    [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return function


def _instead(name: str) -> str | None:
    if name in HARMLESS:
        return None
    return CALLS.get(name) or (USE.get(name.partition(".")[0]) if "." in name else None)


def _calls(tree: ast.Module, names: dict[str, Any]) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls with the full name of the called function, in the order of the text. Lambdas and inner functions
    that do not use the context may be steps, and are left out."""
    function = _function(tree)
    context = function.args.args[0].arg
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) and not _uses(node, context):
            continue
        if isinstance(node, ast.Call) and (name := _called(node.func, names)):
            yield node, name
        pending[:0] = ast.iter_child_nodes(node)


def _uses(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _called(node: ast.expr, names: dict[str, Any]) -> str | None:
    """Return the full name of a called function: `time.time` for `time.time()`, and for `now()` after `from time import
    time as now`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = names.get(node.id)
    if inspect.ismodule(value):
        return ".".join([value.__name__, *parts])
    if value is not None and getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        home = str(value.__module__).lstrip("_")
        return ".".join([home, value.__qualname__, *parts])
    return ".".join([node.id, *parts])
