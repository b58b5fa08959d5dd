"""The models of secrets, which can be set and never read."""

from __future__ import annotations

from pydantic import Field, SecretStr

from penstock_api.models.model import Answer, Given, ReasonText, Tenant


class SetSecret(Given):
    value: SecretStr = Field(
        max_length=65_536, description="At least 4 characters. The value is never shown again."
    )
    tenant: Tenant = Field(default="public", description="Only executions of this tenant can use the secret.")
    reason: ReasonText | None = Field(
        default=None,
        description="The reason for the change, which is stored with your name. null: no reason.",
    )


class DeletedSecret(Answer):
    """The confirmation that a secret was deleted."""

    name: str = Field(description="The name of the deleted secret.")
    tenant: str = Field(description="The tenant of the deleted secret.")
    notice: str | None = Field(
        None,
        description="Sentences for people if enabled definitions still use the secret, with the names of at most 10. null: "
        "no enabled definition uses it.",
    )
