"""Paths of parameters, by which limits and breakers are grouped."""

from __future__ import annotations

import re
from typing import Annotated

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
