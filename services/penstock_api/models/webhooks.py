"""The models of webhooks, without their secrets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from penstock_api.models.model import Given, Tenant

Signature = Literal["secret", "github", "stripe", "standard"]


class PutWebhook(Given):
    trigger: str = Field(description="The trigger: each call becomes an event of it.")
    tenant: Tenant = "public"
    signature: Signature
    secret: str | None = Field(
        default=None, description="The secret. If it is omitted, the present one stays."
    )
    header: str | None = Field(default=None, description="The header with a plain secret: X-Webhook-Secret.")
    key_header: str | None = Field(default=None, description="The header that identifies repeated calls.")
    payload: Any = Field(
        default=None, description="A template over `body`, `headers`, `query`; null: the body."
    )
    completes: str | None = Field(
        default=None, description="Template that gives the id of what executions wait for, or nothing."
    )
    fails: str | None = Field(
        default=None, description="Condition over the same names: the executions fail instead of completing."
    )
