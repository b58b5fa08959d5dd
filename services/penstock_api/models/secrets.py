"""The models of secrets, which can be set and never read."""

from __future__ import annotations

from pydantic import Field, SecretStr

from penstock_api.models.model import Given, ReasonText, Tenant


class SetSecret(Given):
    value: SecretStr = Field(
        max_length=65_536, description="At least 4 characters. The value is never shown again."
    )
    tenant: Tenant = Field(default="public", description="Only executions of this tenant can use the secret.")
    reason: ReasonText | None = Field(
        default=None, description="The reason for the change, stored with your name. null: none."
    )
