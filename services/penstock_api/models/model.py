"""The bases of all models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, Strict

from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.outside_names import TENANT

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


Instant = Annotated[
    AwareDatetime,
    Strict(False),
    Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)),
]
"""An instant with an offset, such as 2030-01-31T09:00:00Z."""
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
        description="The maximum number of executions that rules may start because of it, directly and indirectly. "
        "null: no bound.",
    ),
]
Duration = str | float
"""Seconds, or a text such as "5m"."""
Text = Annotated[str, Field(max_length=10_000)]
