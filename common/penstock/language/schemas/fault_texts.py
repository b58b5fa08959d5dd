"""The texts of a value's faults. They show the expected form and never the value, which may be secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from penstock.language.schemas.faults import Fault
from penstock.language.terms.options import LONGEST_WORD, did_you_mean, dotted

SHOWN_NAMES = 10
"""The maximum number of names that one fault lists."""


def fault_text(fault: Fault, label: str) -> tuple[str, str | None]:
    """Return the fault in words, and a hint."""
    place = tuple(step if isinstance(step, int) else _cut(step) for step in fault.place)
    at = f"{label}.{dotted(place)}" if place and isinstance(place[0], str) else f"{label}{dotted(place)}"
    expected = fault.expected
    match fault.word:
        case "type":
            names = [expected] if isinstance(expected, str) else expected
            return f"{at}: expected {' or '.join(names)}, got {_kind(fault.value)}", None
        case "required":
            verb = "is" if len(fault.names) == 1 else "are"
            return f"{at}: {_listed(sorted(fault.names))} {verb} missing", None
        case "additionalProperties" | "unevaluatedProperties":
            names = sorted(fault.names)
            return f"{at}: unknown {_listed(names, repr)}", did_you_mean(_cut(names[0]), fault.known_names)
        case "enum":
            return f"{at}: expected one of {_short(expected)}", None
        case "anyOf" | "oneOf":
            return f"{at}: fits none, or too many, of the {len(expected)} forms allowed", None
        case None:
            return f"{at}: nothing is allowed here", None
    return f"{at}: does not satisfy {fault.word}: {_short(expected)}", None


def _listed(names: Sequence[str], show: Callable[[str], str] = str) -> str:
    """Return the first SHOWN_NAMES of `names`, each as `show` writes it, and the number of the others."""
    listed = ", ".join(show(_cut(name)) for name in names[:SHOWN_NAMES])
    hidden_count = len(names) - SHOWN_NAMES
    return f"{listed} and {hidden_count:,} more" if hidden_count > 0 else listed


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_WORD else f"{name[:LONGEST_WORD]}..."


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 120 else f"{text[:120]}..."
