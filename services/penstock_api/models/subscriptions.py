"""The models of subscriptions: programs that are called when executions change status."""

from __future__ import annotations

from pydantic import Field

from penstock.language.terms.run_labels import MAX_LABELS
from penstock.store.access.subscriptions import Subscription
from penstock_api.models.model import Answer, Given, Tenant, Text


class PutSubscription(Given):
    url: str = Field(
        max_length=2000,
        description="The URL that receives the requests, for example https://example.org/hook.",
    )
    statuses: list[str] = Field(
        default_factory=list,
        max_length=50,
        description="The statuses to report. Empty: all final statuses.",
    )
    tenant: Tenant | None = Field(
        default=None,
        description="Only executions of this tenant are reported. null: executions of all tenants.",
    )
    action: Text | None = Field(
        default=None,
        description="Only executions of these actions are reported, such as `shop.*`. null: executions of all actions.",
    )
    workflow: Text | None = Field(
        default=None,
        description="Only executions of this workflow are reported. With `tasks`, those of its tasks are reported too. "
        "If `action` is set too, an execution must match both. null: no restriction.",
    )
    tasks: bool = Field(default=False, description="Include the tasks of workflows.")
    labels: dict[str, str] | None = Field(
        default=None,
        max_length=MAX_LABELS,
        description='Only executions with all of these labels are reported: {"customer": "acme"}. null: no restriction.',
    )
    secret: Text | None = Field(
        default=None,
        description="The key that signs requests: `whsec_` followed by base64. null: an existing subscription keeps "
        "its key, and a new subscription gets a generated key.",
    )


class MadeSubscription(Answer):
    subscription: Subscription = Field(description="The subscription as it is now.")
    secret: str | None = Field(
        description="The secret, if one was created; else null. Only this answer contains it."
    )
