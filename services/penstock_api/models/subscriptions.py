"""The models of subscriptions: programs that are called when executions change status."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock_api.models.model import Answer, Given, Tenant, Text


class Subscription(Answer):
    """A subscription, without its secret."""

    name: str
    url: str
    statuses: list[str]
    tenant: str | None
    action: str | None
    workflow: str | None
    tasks: bool
    created_by: str
    created_at: datetime
    delivered_at: datetime | None = Field(description="When a call was answered last.")
    failing_since: datetime | None
    error: str | None
    waiting: int = Field(description="Calls that have not come through yet.")
    dropped: int = Field(description="Calls that were given up.")
    disabled_at: datetime | None
    disabled_because: str | None


class PutSubscription(Given):
    url: str = Field(max_length=2000, description="Where calls go: https://example.org/hook.")
    statuses: list[str] = Field(default_factory=list, max_length=50, description="None: all final ones.")
    tenant: Tenant | None = None
    action: Text | None = Field(default=None, description="Only of this action, such as `shop.*`.")
    workflow: Text | None = Field(default=None, description="Only runs of this workflow.")
    tasks: bool = Field(default=False, description="With the tasks of workflows.")
    secret: Text | None = Field(
        default=None, description="Base64 after `whsec_`. Not given: one is made, or that which it has stays."
    )


class MadeSubscription(Answer):
    subscription: Subscription
    secret: str | None = Field(description="Where one was made. It is in this answer and nowhere else.")
