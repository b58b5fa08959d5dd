"""The description of a public name in Markdown: its signature, its docstring, its options or members, and its errors."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import MethodType
from typing import Any

from pydantic import BaseModel

from docs.written.fields import attribute_docs, table
from penstock import errors
from penstock.settings import Settings

ROOT = Path(__file__).parents[2]
INSTANCES = {
    "DurableContext": "ctx",
    "DurableRun": "run",
    "SimulatedRun": "run",
    "RunContext": "current()",
    "TaskHandle": "task",
}
"""The names by which examples call objects of these classes. Others have the name of their class, or `client`."""
LINE = 100
"""The number of characters above which a signature has a line for each parameter."""
RAISES = re.compile(r"[Rr]aises (.*?)(?:\.\s|\.$|$)", re.DOTALL)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def kind_of(value: Any) -> str:
    """Return `class`, `function` or `value`."""
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isfunction(inspect.unwrap(value)) else "value"


def described(name: str, value: Any, home: str, level: str) -> str:
    """Return the description of a name that the module `home` defines. `level` are the marks of a heading inside it."""
    if kind_of(value) == "function":
        return f"{fenced(_signature(name, value))}{_text(value)}{_raised(_doc(value))}"
    if kind_of(value) == "value":
        line, doc = value_docs(home)[name]
        return f"{fenced(line)}\n{doc}\n"
    return _class(name, value, level)


def fenced(code: str) -> str:
    return f"\n```python\n{code}\n```\n"


def linked_errors(doc: str) -> list[str]:
    """Return the names of the errors in the sentences of a docstring that begin with "Raises"."""
    names = [name for sentence in RAISES.findall(doc) for name in re.findall(r"\b[A-Z]\w+", sentence)]
    return list(dict.fromkeys(name for name in names if _is_error(name)))


def _is_error(name: str) -> bool:
    known = getattr(errors, name, None) or vars(sys.modules["builtins"]).get(name)
    return inspect.isclass(known) and issubclass(known, BaseException)


def _raised(doc: str) -> str:
    shown = [
        f"[`{name}`](../errors/{name}.md)" if hasattr(errors, name) else f"`{name}`"
        for name in linked_errors(doc)
    ]
    return f"\nRaises: {', '.join(shown)}\n" if shown else ""


def _class(name: str, value: type, level: str) -> str:
    text = f"{fenced(_class_signature(name, value))}{_text(value)}{_raised(_doc(value))}"
    if value is Settings:
        return f"{text}\nEach setting is a field: [configuration](../../configuration.md).\n"
    if issubclass(value, BaseModel):
        return f"{text}\n{level} Options\n\n{table(value)}" if value.model_fields else text
    fields = "".join(
        f"| `{field}` | {' '.join(doc.split())} |\n"
        for field, doc in attribute_docs(value).items()
        if not field.startswith("_")
    )
    if fields:
        text += f"\n{level} Fields\n\n| field | |\n|---|---|\n{fields}"
    return text + "".join(_members(name, value, level))


def _class_signature(name: str, value: type) -> str:
    if issubclass(value, BaseModel):
        positional = [*getattr(value, "positional", ())]
        return f"{name}({', '.join([*positional, '*', '**options'] if positional else ['**options'])})"
    init = vars(value).get("__init__")
    if inspect.isfunction(init) and init.__code__.co_filename != "<string>":
        return _signature(name, init, method=True)
    declared = _fields(value)
    return _lines(name, declared, "") if declared else f"class {name}"


def _fields(value: type) -> list[str]:
    fields = getattr(value, "__dataclass_fields__", {})
    return [f"{field.name}: {field.type}" for field in fields.values() if field.init and field.name[0] != "_"]


def _members(name: str, value: type, level: str) -> Iterator[str]:
    members: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("penstock"):
            members |= {key: member for key, member in vars(base).items() if not key.startswith("_")}
            members |= {"__call__": vars(base)["__call__"]} if "__call__" in vars(base) else {}
    for key, member in members.items():
        if isinstance(member, property | functools.cached_property):
            getter: Any = member.fget if isinstance(member, property) else member.func
            signature = f"{name}.{key} -> {_returns(getter)}"
        elif isinstance(member, classmethod | staticmethod):
            getter = member.__func__
            signature = _signature(f"{name}.{key}", getter, method=isinstance(member, classmethod))
        elif callable(member) and inspect.isfunction(inspect.unwrap(member)):
            getter = member
            instance = INSTANCES.get(name, "client" if name.endswith("Client") else name.lower())
            label = instance if key == "__call__" else f"{instance}.{key}"
            signature = _signature(label, getter, method=True)
        else:
            continue
        if not (_doc(getter) or isinstance(member, property)):
            continue
        heading = f"\n{level} `{key}`\n"
        yield f"{heading}{fenced(signature)}{_text(getter)}{_raised(_doc(getter))}"


def _signature(label: str, value: Any, *, method: bool = False) -> str:
    node = _node(inspect.unwrap(value))
    parameters = list(_parameters(node.args))[1 if method else 0 :]
    awaited = "await " if inspect.iscoroutinefunction(value) else ""
    returns = (
        "" if node.returns is None or (label[0].isupper() and "." not in label) else f" -> {_returns(value)}"
    )
    return _lines(f"{awaited}{label}", parameters, returns)


def _lines(label: str, parameters: list[str], returns: str) -> str:
    line = f"{label}({', '.join(parameters)}){returns}"
    if len(line) <= LINE:
        return line
    return f"{label}(\n" + "".join(f"    {part},\n" for part in parameters) + f"){returns}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yield each parameter as it is written, with the marks `/` and `*`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for n, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(argument, default)
        if n == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return ast.unparse(argument)
    between = " = " if argument.annotation else "="
    return f"{ast.unparse(argument)}{between}{ast.unparse(default)}"


def _returns(value: Any) -> str:
    returns = _node(inspect.unwrap(value)).returns
    return "Any" if returns is None else ast.unparse(returns)


def _node(function: Any) -> Function:
    [node] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, Function)
    return node


def _doc(value: Any) -> str:
    value = value.__func__ if isinstance(value, MethodType) else value
    return inspect.cleandoc(
        (value.__doc__ if inspect.isclass(value) else inspect.unwrap(value).__doc__) or ""
    )


def _text(value: Any) -> str:
    doc = _doc(value)
    return f"\n{doc}\n" if doc else ""


@functools.cache
def value_docs(home: str) -> dict[str, tuple[str, str]]:
    """Return the line that assigns it and the text below it, for each name of a module. Names in a row share a text."""
    body = ast.parse(inspect.getsource(sys.modules[home])).body
    docs: dict[str, tuple[str, str]] = {}
    waiting: list[tuple[str, str]] = []
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            waiting.append((statement.targets[0].id, ast.unparse(statement)))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            waiting.append(
                (statement.target.id, f"{statement.target.id}: {ast.unparse(statement.annotation)}")
            )
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            docs |= {name: (line, str(statement.value.value).strip()) for name, line in waiting}
            waiting = []
        else:
            waiting = []
    return docs
