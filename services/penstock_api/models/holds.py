"""The models of holds."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from penstock_api.models.model import Answer, Given, Instant, Text

Kind = Literal["action", "pack", "route", "tenant"]


class Hold(Answer):
    kind: str
    name: str
    reason: str | None
    by: str
    since: datetime
    until: datetime | None
    rate_count: int | None = Field(
        description="For a hold that is being released: the number of starts within `rate_seconds`."
    )
    rate_seconds: float | None
    releasing_since: datetime | None
    held: int = Field(description="The number of held executions.")


class NewHold(Given):
    kind: Kind
    name: Text = Field(description="An action or workflow, a pack, a route or a tenant.")
    reason: Text | None = None
    until: Instant | None = Field(default=None, description="The instant at which it ends by itself.")


class Release(Given):
    kind: Kind
    name: Text
    rate: Text | None = Field(
        default=None, description="The number of starts within a time: 10/min. Null: all at once."
    )
