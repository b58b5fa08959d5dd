"""The models of events, for publishing and showing them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from penstock_api.models.definitions import Verdict
from penstock_api.models.model import Answer, Given, Tenant


class Publish(Given):
    """An event to publish."""

    trigger: str = Field(description="Its kind, such as `shop.order_placed`.", max_length=300)
    payload: Any = Field(default_factory=dict)
    tenant: Tenant = "public"


class Published(Answer):
    id: UUID = Field(description="The event. It is stored for good.")


class ListedEvent(Answer):
    id: UUID
    trigger: str
    tenant: str
    source: str | None
    created_at: datetime
    payload: Any
    matched: int = Field(description="Rules that have matched it.")


class Enforcement(Answer):
    """A rule that matched an event."""

    id: UUID = Field(description="What an announcement `enforcement.created` names.")
    event: UUID
    rule: str
    trigger: str
    tenant: str
    status: str = Field(description="`created`, `executed` or `failed`.")
    execution: UUID | None = Field(description="What it started; null where the rule failed.")
    error: str | None
    created_at: datetime


class Event(Answer):
    """An event, with the outcomes of its trigger's rules; secrets are `***`."""

    id: UUID
    trigger: str
    tenant: str
    payload: Any
    source: str | None
    created_at: datetime
    awaited: bool = Field(description="Some task of a workflow waits for an event of this trigger.")
    rules: list[Verdict]
