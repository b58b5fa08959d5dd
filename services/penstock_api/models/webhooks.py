"""The models of webhooks, without their secrets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from penstock_api.models.model import Given, Tenant

Signature = Literal["secret", "github", "stripe", "standard"]


class PutWebhook(Given):
    trigger: str = Field(
        description="The trigger of the events. Each call of the webhook becomes an event of this trigger."
    )
    tenant: Tenant = Field(default="public", description="The tenant of the events.")
    signature: Signature
    secret: str | None = Field(
        default=None,
        description="The secret that callers must have. A new webhook needs a secret. null: an existing webhook keeps "
        "its secret.",
    )
    header: str | None = Field(
        default=None,
        description="Only for the signature scheme `secret`: the name of the header that carries the secret. "
        "null: X-Webhook-Secret.",
    )
    key_header: str | None = Field(
        default=None,
        description="The name of the header that carries the id of a call. A second call with the same id is ignored. "
        "null: the signature schemes `github`, `stripe` and `standard` use their own ids. With the scheme called "
        "`secret`, each call counts as new.",
    )
    payload: Any = Field(
        default=None,
        description='The event payload: an object of templates, such as {"order": "{{ body.id }}"}. '
        "Variables: `body`, `headers`, `query`. Default: the body of the call.",
    )
    completes: str | None = Field(
        default=None,
        description="A template for the id of a callback, for example {{ body.id }}. A call continues the "
        "executions that wait for the callback with this id. null: a call only creates an event.",
    )
    fails: str | None = Field(
        default=None,
        description="A condition, such as body.status == 'error'. If the condition is true, the call makes the "
        "waiting executions fail. Variables: `body`, `headers`, `query`. null: the executions always continue.",
    )
