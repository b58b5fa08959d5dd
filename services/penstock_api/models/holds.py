"""The models of holds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock_api.models.model import Given, Instant, ReasonText, Text

Kind = Literal["action", "pack", "route", "tenant"]


class NewHold(Given):
    kind: Kind = Field(
        description="The kind of the hold: of an action or workflow, a pack, a route or a tenant."
    )
    name: Text = Field(description="An action or workflow, a pack, a route or a tenant.")
    reason: ReasonText | None = None
    until: Instant | None = Field(
        default=None,
        description="The instant at which it ends by itself. null: it stays until it is released.",
    )
    force: bool = Field(
        default=False, description="True: hold a name that has no definition and no execution yet."
    )


class ReleaseHold(Given):
    kind: Kind = Field(
        description="The kind of the hold: of an action or workflow, a pack, a route or a tenant."
    )
    name: Text = Field(description="The name of the held action, pack, route or tenant.")
    rate: Text | None = Field(
        default=None, description="The rate of the starts, such as 10/min. null: all at once."
    )
