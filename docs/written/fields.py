"""A table of the options of a model: their names, what they take, their defaults, and what the code says of them."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Row = tuple[str, str, str, str]
HEAD = "| option | takes | default | |\n|---|---|---|---|\n"
SECONDS = {"Duration", "PositiveDuration"}


def table(model: Any, *, without: tuple[str, ...] = ()) -> str:
    said = attribute_docs(model)
    hints = lengths_of_time(model)
    rows = [
        row(field.alias or name, hints.get(name, field.annotation), field, said.get(name, ""))
        for name, field in model.model_fields.items()
        if name not in without
    ]
    rows += [
        (f"`{name}`", taken, "", text) for name, (taken, text) in getattr(model, "SHORT_FORMS", {}).items()
    ]
    return HEAD + "".join(f"| {' | '.join(map(cell, one))} |\n" for one in rows)


def row(name: str, hint: Any, field: FieldInfo, said: str) -> Row:
    return f"`{name}`", takes(hint), default_of(field), said


def cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def takes(hint: Any) -> str:
    """Return the type of a field in words."""
    if isinstance(hint, str):
        return _words(hint)
    return _words(_spelled(hint))


def _spelled(hint: Any) -> str:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _spelled(inside[0])
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inside)
    if origin in (Union, UnionType):
        return " or ".join(_spelled(one) for one in inside if one is not NoneType)
    if origin is not None:
        return getattr(origin, "__name__", str(origin))
    return getattr(hint, "__name__", str(hint))


def _words(spelled: str) -> str:
    known = {
        "str": "text",
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "dict": "a mapping",
        "list": "a list",
        "tuple": "one or several",
        "Any": "anything",
        "object": "anything",
    }
    return " or ".join(known.get(one, one) for one in spelled.split(" or "))


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value == () or value == {} or value == "" or isinstance(value, BaseModel):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def lengths_of_time(model: Any) -> dict[str, Any]:
    """Return the types as pydantic has them, and durations as the words that users write."""
    found: dict[str, Any] = {}
    for statement in _statements(model):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            written = ast.unparse(statement.annotation)
            if written.removesuffix(" | None") in SECONDS:
                found[statement.target.id] = "seconds, or `90s`, `5m`, `2h`, `1d`"
    return found


def attribute_docs(model: Any) -> dict[str, str]:
    """Return the docstrings below the fields of a class and its bases."""
    found: dict[str, str] = {}
    for statement, after in itertools.pairwise([*_statements(model), ast.Pass()]):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[statement.target.id] = str(after.value.value)
    return found


def _statements(model: Any) -> Iterator[ast.stmt]:
    for one in reversed(model.__mro__):
        if one.__module__.startswith("penstock."):
            yield from _class_body(one.__module__, one.__qualname__)


@functools.cache
def _class_body(module: str, name: str) -> list[ast.stmt]:
    [found] = [one for one in _module_body(module) if isinstance(one, ast.ClassDef) and one.name == name]
    return found.body


@functools.cache
def _module_body(module: str) -> list[ast.stmt]:
    return ast.parse(inspect.getsource(sys.modules[module])).body


def said_of(model: type) -> str:
    return inspect.cleandoc(model.__doc__ or "")
