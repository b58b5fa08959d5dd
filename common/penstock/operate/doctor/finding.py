"""The result of one check."""

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


def ok(subject: str, says: object) -> Finding:
    return Finding(subject, "ok", str(says))


def warning(subject: str, says: object, fix: str) -> Finding:
    return Finding(subject, "warning", str(says), fix)


def bad(subject: str, says: object, fix: str) -> Finding:
    return Finding(subject, "bad", str(says), fix)
