"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

State = Literal["ok", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, with the next step unless the state is `ok`."""

    what: Annotated[str, Field(description="The subject of the check.")]
    state: Annotated[State, Field(description="ok, warning, bad"), WithJsonSchema({"type": "string"})]
    says: Annotated[str, Field(description="The result of the check, as a sentence.")]
    fix: Annotated[str | None, Field(description="The next step; null if the state is ok.")]


def ok(subject: str, says: object) -> Finding:
    return Finding(subject, "ok", str(says), None)


def warning(subject: str, says: object, fix: str) -> Finding:
    return Finding(subject, "warning", str(says), fix)


def bad(subject: str, says: object, fix: str) -> Finding:
    return Finding(subject, "bad", str(says), fix)
