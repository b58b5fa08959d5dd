"""The models of breakers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from penstock_api.models.model import Answer, Given, Instant, Text


class Breaker(Answer):
    ref: str
    scope: str
    by: list[str] = Field(description="The parameters that it is grouped by.")
    group_value: str = Field(description="The values of these parameters, as text.")
    state: str = Field(description="closed, open or releasing")
    since: datetime | None
    failed: int = Field(description="The failures among `attempts`, now or when it opened.")
    attempts: int
    failures: int = Field(description="The number of failures that opens it.")
    of: int
    within: float
    probe: float
    probe_in: float | None = Field(description="Seconds to the next probe; null if none is planned.")
    probes: int = Field(description="The number of failed probes.")
    allowed: int | None = Field(description="The calls that may be under way while it releases.")
    by_whom: str | None = Field(description="The person that opened it.")
    reason: str | None
    waiting: int = Field(description="The number of executions that wait at it.")


class OpenBreaker(Given):
    ref: Text = Field(description="The action with the breaker.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="The values of the parameters that it is grouped by."
    )
    reason: Text | None = None
    until: Instant | None = Field(
        default=None, description="The instant of its probe. Null: when it is closed."
    )


class CloseBreaker(Given):
    ref: Text = Field(description="The action with the breaker.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="The values of the parameters that it is grouped by."
    )
    at_once: bool = Field(default=False, description="Whether all that waits is released at once.")
