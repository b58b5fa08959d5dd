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
        description="The header that carries the secret, for the kind of signature called `secret`. Default: X-Webhook-Secret.",
    )
    key_header: str | None = Field(
        default=None,
        description="The header with the id of a call. A second call with the same id is ignored.",
    )
    payload: Any = Field(
        default=None,
        description='The event payload: an object of templates, such as {"order": "{{ body.id }}"}. '
        "Variables: `body`, `headers`, `query`. Default: the body.",
    )
    completes: str | None = Field(
        default=None,
        description="A template that gives an id, such as {{ body.id }}. Each call then completes the executions that wait "
        "for an outcome with this id. Empty: calls complete no execution.",
    )
    fails: str | None = Field(
        default=None,
        description="A condition, such as body.status == 'error'. If it is true, the call fails these executions instead. "
        "Variables: `body`, `headers`, `query`.",
    )
