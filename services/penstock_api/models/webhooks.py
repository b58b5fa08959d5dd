"""The models of webhooks, without their secrets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from penstock_api.models.model import Given, Tenant

Signature = Literal["secret", "github", "stripe", "standard"]


class PutWebhook(Given):
    trigger: str = Field(description="Each call becomes an event of this trigger.")
    tenant: Tenant = "public"
    signature: Signature
    secret: str | None = Field(
        default=None, description="The secret that callers use. Empty: the secret stays as it is."
    )
    header: str | None = Field(
        default=None,
        description="Only if signature is `secret`: the header that carries the secret. Default: X-Webhook-Secret.",
    )
    key_header: str | None = Field(
        default=None,
        description="The header whose value is equal in repeated calls, so that each call counts once.",
    )
    payload: Any = Field(
        default=None,
        description="Template for the event payload. Variables: `body`, `headers`, `query`. Default: the body.",
    )
    completes: str | None = Field(
        default=None,
        description="Template for an id. A call completes the executions that wait for this id. Empty: it completes none.",
    )
    fails: str | None = Field(
        default=None,
        description="Condition. If it is true, the waiting executions fail instead. Variables: `body`, `headers`, `query`.",
    )
