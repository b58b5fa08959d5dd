"""Paths of parameters, by which limits and breakers are grouped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from penstock.language.terms.options import Items, Wrong

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


def _paths(value: object) -> object:
    several = list(value) if isinstance(value, list | tuple) else [value]
    for path in several:
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            hint = "Write the path of a parameter, such as 'customer' or 'order.customer.id'."
            raise Wrong(f"is not a path of a parameter: {path!r}", hint)
    if len(set(several)) < len(several):
        raise Wrong("names a parameter twice", None)
    return tuple(several)


Paths = Annotated[Items[str], BeforeValidator(_paths)]


def value_at(parameters: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of stored parameters, or None."""
    value: Any = parameters
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
