"""Undefined names. Any use of one is an error, which can name what exists instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import UndefinedError
from jinja2.utils import missing

from penstock.language.expressions.budget import Refused

_SHOWN = 12
_OTHER_LANGUAGES = {"null": "none", "nil": "none", "undefined": "none", "NULL": "none", "TRUE": "true"}


class MissingName(UndefinedError):
    """The error of using something undefined. `undefined` has its name, and the value in which it was looked up."""

    def __init__(self, undefined: Missing, message: str) -> None:
        super().__init__(message)
        self.undefined = undefined

    def explain(
        self, source: str, namespace: Mapping[str, Any], functions: Iterable[str]
    ) -> tuple[str, str | None]:
        """Return the missing name, and a hint. The hint has only names, and keys that occur in the text, since values
        may be secret."""
        name, inside = self.undefined._undefined_name, self.undefined._undefined_obj
        if name is None:
            return str(self.message), None
        if inside is missing:
            if other := _OTHER_LANGUAGES.get(name):
                return f"`{name}` is not defined", f"Write `{other}`."
            return f"`{name}` is not defined", _suggest(name, list(namespace), functions)
        if str(name) not in source:
            return "a field that the expression reads does not exist", None
        if isinstance(inside, Mapping):
            return f"there is no field `{name}`", _suggest(name, list(inside), listed_as="Available fields")
        if isinstance(name, int) and isinstance(inside, (list, tuple, str)):
            return f"there is no item {name}: the value has {len(inside)} items, from 0", None
        return f"a {_kind(inside)} has no `{name}` that an expression may use", None


class Missing(StrictUndefined):
    """An undefined value. `missing.x` is undefined too, so that `a.b.c | default(1)` needs no guards."""

    __slots__ = ()

    def __init__(
        self, hint: str | None = None, obj: Any = missing, name: Any = None, exc: Any = None
    ) -> None:
        super().__init__(hint, obj, name, partial(MissingName, self))  # type: ignore[arg-type]


class Unreadable(Missing):
    """A value that exists and cannot be read. Each look-up in it and each use of it fails with its reason. Unlike for
    a missing value, `default` does not replace it."""

    __slots__ = ()

    def __init__(self, reason: str, hint: str) -> None:
        StrictUndefined.__init__(self, reason, exc=partial(Refused, hint=hint))  # type: ignore[arg-type]


def readable(value: Any) -> Any:
    """Return `value`. Raises Refused if it cannot be read."""
    if type(value) is Unreadable:
        bool(value)  # raises for an undefined value
    return value


def _suggest(name: object, keys: list[Any], also: Iterable[str] = (), *, listed_as: str = "Available") -> str:
    names = [key for key in keys if isinstance(key, str)]
    near = get_close_matches(str(name), [*names, *also], n=1)
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    meant = f"Did you mean `{near[0]}`? " if near else ""
    return f"{meant}{listed_as}: {listed or 'none'}."


def _kind(value: object) -> str:
    return "none" if value is None else type(value).__name__
