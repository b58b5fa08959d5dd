"""The models of events, for publishing and showing them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from penstock.store.executions.effects import Continued
from penstock_api.models.definitions import Verdict
from penstock_api.models.model import Answer, Given, MaxDepth, MaxDescendants, Tenant


class Publish(Given):
    """An event to publish."""

    trigger: str = Field(description="The trigger, such as `shop.order_placed`.", max_length=300)
    payload: Any = Field(
        default_factory=dict,
        description="The content of the event, which must match the schema of the trigger.",
    )
    tenant: Tenant = Field(
        default="public",
        description="The tenant of the event: only rules of this tenant, and rules for all tenants, see it.",
    )
    max_depth: MaxDepth = None
    max_descendants: MaxDescendants = None


class Published(Answer):
    id: UUID = Field(description="The id of the event, which is durably stored.")


class Event(Answer):
    """An event, with the outcomes of its trigger's rules; secrets are `***`."""

    id: UUID = Field(description="The id of the event.")
    trigger: str
    tenant: str
    payload: Any
    source: str | None
    key: str | None = Field(
        default=None,
        description="The key with which it was published: its message id. null: it has none, or the key is not kept any "
        "more.",
    )
    published_by: UUID | None = Field(
        default=None, description="The execution that published it; null if none did."
    )
    created_at: datetime
    awaited: bool = Field(description="True if a task of a workflow waits for an event of this trigger.")
    trace: str | None = Field(
        description="The trace context of its publisher, as JSON; null if it is not traced."
    )
    continued: list[Continued] = Field(
        description="The executions that waited for this event: it ended their wait, and they continued or failed."
    )
    rules: list[Verdict] = Field(description="The outcome of each rule of its trigger.")
