"""Labels: properties of a worker, such as a GPU or a zone, that an action may require. A worker offers an action only
if it carries all labels that the action requires.

All other processes treat a worker without the labels like one without the action. Such a worker hands the work on, and
never fails it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def parse_labels(text: str) -> dict[str, str]:
    """Parse labels such as `gpu=a100,zone=eu`. A name alone has the value `true`. Raises ValueError if a label is not
    valid or has two values."""
    labels: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        value = value if sign else "true"
        check_label(name, value)
        if labels.setdefault(name, value) != value:
            raise ValueError(f"the label {name} has two values, {labels[name]} and {value}")
    return labels


def check_label(name: str, value: str) -> None:
    """Raise ValueError if the name or value of a label is invalid."""
    for word in (name, value):
        if not _WORD.fullmatch(word):
            raise ValueError(
                f"{name}={value} is not a label: write name=value, each of at most 63 letters, digits, '_', '.' and '-'"
            )


def format_labels(labels: Mapping[str, str]) -> str:
    """Return labels as the text that `parse_labels` parses."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def carries_all(required: Mapping[str, str], carries: Mapping[str, str]) -> bool:
    """Return whether a worker that `carries` these labels has all labels in `required`."""
    return required.items() <= carries.items()
