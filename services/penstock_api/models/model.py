"""The bases of all models."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import orjson
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic_core import PydanticCustomError

from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.outside_names import TENANT
from penstock.run import instants

T = TypeVar("T")


class Answer(BaseModel):
    """The base of answers that are composed of several records, or show only a part of one. Other routes return records."""

    model_config = ConfigDict(from_attributes=True)


class Changed(Answer):
    """The base of answers to a request that applies a definition."""

    what: str = Field(description="`new`, `changed`, `unchanged`")


class Given(BaseModel):
    """The base of request bodies. It refuses unknown fields, NaN, and values of another type ("no" is not false)."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Page(BaseModel, Generic[T]):
    """A page of a list, newest first."""

    items: list[T] = Field(description="The objects of this page, newest first.")
    next: str | None = Field(description="The value of `before` for the next page; null on the last page.")


def loaded(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str) else value


def _instant(value: Any) -> Any:
    """Return the datetime of a text. pydantic itself would read digits and numbers as Unix seconds or milliseconds."""
    if isinstance(value, datetime):
        return value
    reason = "it has no offset"
    try:
        at = instants.instant(value)
    except instants.WrongInstant as wrong:
        reason = str(wrong)
    else:
        if at.tzinfo is not None:
            return at
    raise PydanticCustomError(
        "instant", "is not an instant, such as 2030-01-31T09:00:00Z: {reason}", {"reason": reason}
    )


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_instant),
    Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)),
]
"""An instant in ISO 8601 with its time and offset, such as 2030-01-31T09:00:00Z. Numbers and digits are refused."""


def _day(value: Any) -> Any:
    """Return the date of a text. pydantic itself would read digits as Unix seconds."""
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise PydanticCustomError("day", "is not a day, such as 2030-01-31")


_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Day = Annotated[date, BeforeValidator(_day)]
"""A day in a request, such as 2030-01-31. Numbers and digits are refused."""
Id = Annotated[UUID, Strict(False)]
"""An id in a request, where it is text."""
Tenant = Annotated[str, Field(pattern=TENANT)]
MaxDepth = Annotated[
    int | None,
    Field(
        ge=1,
        le=INTEGER,
        description="The maximum number of rules that may trigger each other in a chain: rule, execution, event, next rule. "
        "null: no bound.",
    ),
]
MaxDescendants = Annotated[
    int | None,
    Field(
        ge=1,
        le=INTEGER,
        description="The maximum number of executions that rules may start because of this event or execution, "
        "directly and indirectly. "
        "null: no bound.",
    ),
]
Duration = str | float
"""Seconds, or a text such as "5m"."""
Text = Annotated[str, Field(max_length=10_000)]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which PostgreSQL refuses: remove it")
    return text


ReasonText = Annotated[Text, AfterValidator(_without_nul)]
"""The reason of a command. It is refused before the command looks for objects, so also where none matches."""
