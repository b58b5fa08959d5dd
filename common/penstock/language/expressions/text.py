"""The making of text, within the limits of the budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from jinja2 import Undefined

from penstock.language.expressions.budget import Refused, fits, spend, spend_on
from penstock.language.expressions.secret_text import SecretText


def as_text(value: Any) -> str:
    """Return the text of a value inside another text, as Python's `str` makes it: `None`, `True`."""
    if isinstance(value, str):
        return value
    if isinstance(value, (Undefined, list, tuple, Mapping, Set)):
        spend_on(value)
    elif callable(value):
        raise Refused("it puts a function into a text", "Call it: add `()`.")
    return str(value)


def concatenate(parts: Iterable[Any]) -> str:
    """Return the parts as one text, in which secrets stay references. Stops as soon as the text is too long, so
    `parts` may be endless."""
    texts: list[str] = []
    length = 0
    for part in parts:
        piece = as_text(part)
        spend(1 + (len(piece) >> 6))
        length = fits(length + len(piece))
        texts.append(piece)
    if any(type(text) is SecretText for text in texts):
        return SecretText.joined(texts)
    return "".join(texts)


def join(values: Iterable[Any], separator: str = "") -> str:
    """Return the values as one text: `values | join(", ")`."""
    spend_on(values)
    texts = [as_text(value) for value in values]
    spend(fits(sum(map(len, texts)) + len(separator) * len(texts)) >> 6)
    return separator.join(texts)


def join_with(separator: str, values: Iterable[Any]) -> str:
    """Return the values as one text: `", ".join(values)`."""
    return join(values, separator)


def replace(value: Any, old: str, new: str, count: int = -1) -> str:
    """Return the text with `old` replaced by `new`: `value | replace(old, new)`."""
    whole = as_text(value)
    spend_on(whole, old, new)
    occurrences = whole.count(old) if count < 0 else min(count, whole.count(old))
    spend(fits(len(whole) + occurrences * max(0, len(new) - len(old))) >> 6)
    return whole.replace(old, new, count)
