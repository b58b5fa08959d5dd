"""The conversion of values to the types of parameters, as StackStorm does it before an action starts."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock_import.wanted_text import NotMapped, Ours

_EXPRESSION = re.compile(r"<%.*?%>|\{\{.*?\}\}", re.DOTALL)
_BLOCK = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_OWN_KINDS = {
    "integer": ("int", "none"),
    "number": ("none",),
    "boolean": ("bool", "none"),
    "array": ("list", "lazy", "none"),
    "object": ("dict", "none"),
}
"""By the type of a parameter, the kinds of values that StackStorm passes on unchanged."""


def only_type(kind: Any) -> str:
    """Return the type to which StackStorm converts a value; an empty text for several types, or for none."""
    kinds = [part for part in (kind if isinstance(kind, list) else [kind]) if part != "null"]
    return str(kinds[0]) if len(kinds) == 1 and kinds[0] is not None else ""


def converted(mapped: str, value: Ours, kind: Any) -> str:
    """Return a template with the value of `mapped`, as StackStorm converts it to the type of a parameter.
    StackStorm converts texts, and also numbers for the types `integer` and `number`. Raises NotMapped for a secret, and for
    a text that StackStorm parses."""
    declared = only_type(kind)
    if declared not in _OWN_KINDS or value.kind in _OWN_KINDS[declared]:
        return mapped
    if value.kind == "secret":
        raise NotMapped("a key of the store for a parameter that is not text")
    if declared in ("array", "object"):
        if value.kind == "str":
            raise NotMapped(f"a text that StackStorm parses for a parameter of the type {declared}")
        return f"{{{{ ({value.text} | fromjson) if {value.text} is string else {value.text} }}}}"
    if declared == "boolean":
        by_word = f'{{"true": true, "false": false, "none": none}}[{value.text} | lower]'
        return f"{{{{ {by_word} if {value.text} is string else {value.text} }}}}"
    filtered = f"{value.text} | {'int' if declared == 'integer' else 'float'}"
    is_never_null = value.kind in ("str", "int", "number", "bool")
    return (
        f"{{{{ {filtered} }}}}"
        if is_never_null
        else f"{{{{ ({filtered}) if {value.text} is not none else none }}}}"
    )


def cast_literal(value: Any, kind: Any) -> Any:
    """Return a literal as the type that the action declares for the parameter, as StackStorm converts it. Raises NotMapped
    for a text that StackStorm refuses."""
    declared = only_type(kind)
    if declared not in _CASTS:
        return value
    if not isinstance(value, str):
        if declared in _NUMBERS and isinstance(value, int | float):
            return _NUMBERS[declared](value)
        return value
    convert, types = _CASTS[declared]
    try:
        result = convert(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        result = None
    is_sound = type(result) in types and not (isinstance(result, float) and not math.isfinite(result))
    if not is_sound or any(mark in str(result) for mark in ("{{", "{%", "{#")):
        raise NotMapped(f"a text that StackStorm does not convert to the type {declared}")
    return result


def may_become_another_type(value: Any) -> bool:
    """Return whether a value is a text that StackStorm would convert for a parameter of some other type. A text with
    expressions in it is one if it would be one with a digit or with a letter in their places."""
    if not isinstance(value, str):
        return False
    bare = _BLOCK.sub("", value)
    for text in {_EXPRESSION.sub(sample, bare) for sample in ("0", "x")}:
        for kind in _CASTS:
            with suppress(NotMapped):
                cast_literal(text, kind)
                return True
    return False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


_NUMBERS: dict[str, Callable[[float], Any]] = {"integer": int, "number": float}
_CASTS: dict[str, tuple[Callable[[str], Any], tuple[type, ...]]] = {
    "integer": (int, (int,)),
    "number": (float, (float,)),
    "boolean": (lambda text: ast.literal_eval(text.capitalize()), (bool,)),
    "array": (_parsed, (list,)),
    "object": (_parsed, (dict,)),
}
"""How StackStorm converts a text to the type of a parameter, and the types of Python that the value may have then."""
