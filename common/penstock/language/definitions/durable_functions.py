"""The durable functions, and the digest of their code."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any


class ContextMark:
    """The mark for the context class of durable functions. The class itself is in the room that runs them."""


def context_parameter(function: Callable[..., Any], hints: Mapping[str, Any]) -> str | None:
    """Return the name of the parameter that takes the context, or None. It is the first parameter, annotated with
    DurableContext, and it makes a function durable."""
    first = next(iter(inspect.signature(function).parameters), None)
    annotation = hints.get(first) if first is not None else None
    return first if isinstance(annotation, type) and issubclass(annotation, ContextMark) else None


def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code. Comments, layout, the docstring and decorators do not change it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError):  # the function was made at run time and has no source
        code = inspect.unwrap(function).__code__
        return hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()[:16]
    [definition] = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)][
        :1
    ]
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:
        definition.body = definition.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(definition).encode()).hexdigest()[:16]
