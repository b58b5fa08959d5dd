"""The models of breakers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock_api.models.model import Given, Instant, ReasonText, Text


class OpenBreaker(Given):
    ref: Text = Field(description="The action with the breaker.")
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="The values of the parameters and labels that it is grouped by: `labels.customer` is a label. null: it is "
        "not grouped.",
    )
    reason: ReasonText | None = None
    until: Instant | None = Field(
        default=None,
        description="The instant at which one execution is let through as a probe. null: it stays open until it is "
        "closed.",
    )


class CloseBreaker(Given):
    ref: Text = Field(description="The action with the breaker.")
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="The values of the parameters and labels that it is grouped by: `labels.customer` is a label. null: it is "
        "not grouped.",
    )
    at_once: bool = Field(
        default=False,
        description="True: all waiting executions are released at once. False: a few, and then more and more.",
    )
