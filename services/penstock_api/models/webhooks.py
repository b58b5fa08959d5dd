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
        default=None,
        description="The secret that callers use. A new webhook needs it. Empty: an existing webhook keeps its secret.",
    )
    header: str | None = Field(
        default=None,
        description="The header that carries the secret. Only for the signature kind `secret`. "
        "Default: X-Webhook-Secret.",
    )
    key_header: str | None = Field(
        default=None,
        description="The header that identifies a call. A repeated call with the same value is ignored.",
    )
    payload: Any = Field(
        default=None,
        description='The event payload: an object of templates, such as {"order": "{{ body.id }}"}. '
        "Variables: `body`, `headers`, `query`. Default: the body.",
    )
    completes: str | None = Field(
        default=None,
        description="Template for a callback id. Each call completes the executions that wait for this callback. "
        "Empty: calls complete no execution.",
    )
    fails: str | None = Field(
        default=None,
        description="Condition. If it is true for a call, the waiting executions fail instead of completing. "
        "Variables: `body`, `headers`, `query`.",
    )
