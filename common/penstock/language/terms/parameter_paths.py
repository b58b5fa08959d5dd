"""Paths of parameters and labels, by which limits, breakers and batches are grouped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BeforeValidator

from penstock.language.terms.options import Items, Wrong
from penstock.language.terms.run_labels import KEY

LABELS = "labels."
"""The beginning of the path of a label: `labels.customer` is the label `customer`. The rest is the whole key, with its dots."""
NEAR = 0.8
"""The similarity of two names, from 0 to 1, above which one may be a typo: `lables` and `labels` have 0.83."""
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_LABEL = re.compile(rf"labels\.{KEY}")


def _key_paths(value: object) -> object:
    several = _several(value)
    for path in several:
        if isinstance(path, str) and path.startswith(LABELS):
            if not _LABEL.fullmatch(path):
                hint = "Write 'labels.customer'. A key has at most 63 lowercase letters, digits, '_', '.' and '-'."
                raise Wrong(f"is not a path of a label: {path!r}", hint)
        elif not isinstance(path, str) or not _PATH.fullmatch(path):
            hint = (
                "Write a parameter, such as 'customer' or 'order.customer.id', or a label: 'labels.customer'."
            )
            raise Wrong(f"is not a path of a parameter or label: {path!r}", hint)
    return _each_once(several)


def _several(value: object) -> Sequence[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _each_once(several: Sequence[object]) -> object:
    if len(set(several)) < len(several):
        raise Wrong("names one path twice", None)
    return tuple(several)


KeyPaths = Annotated[Items[str], BeforeValidator(_key_paths)]
"""A pydantic type: one path of a parameter or a label, or several."""


def is_label(path: str) -> bool:
    """Return whether this is the path of a label."""
    return path.startswith(LABELS)


def meant_label(path: str) -> str | None:
    """Return the path of the label that the path of a parameter was probably meant to be: `labels.customer` for
    `label.customer`. None for a path that resembles no label."""
    source, _, key = path.partition(".")
    is_typo = bool(key) and source != "labels" and bool(get_close_matches(source, ["labels"], cutoff=NEAR))
    return LABELS + key if is_typo else None


def value_at(parameters: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of stored parameters, or None."""
    value: Any = parameters
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def key_values(parameters: Mapping[str, Any], labels: Mapping[str, str], paths: Sequence[str]) -> list[Any]:
    """Return the values at paths of parameters and labels. A missing value is None."""
    return [
        labels.get(path.removeprefix(LABELS)) if is_label(path) else value_at(parameters, path)
        for path in paths
    ]
