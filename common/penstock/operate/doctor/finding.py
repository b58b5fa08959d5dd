"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The subject of a check, its state, and, unless it is ok, what to do."""

    what: str
    state: State
    says: str
    fix: str | None = None


def ok(what: str, says: object) -> Finding:
    return Finding(what, "ok", str(says))


def warning(what: str, says: object, fix: str) -> Finding:
    return Finding(what, "warning", str(says), fix)


def bad(what: str, says: object, fix: str) -> Finding:
    return Finding(what, "bad", str(says), fix)
