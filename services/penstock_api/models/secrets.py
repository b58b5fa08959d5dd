"""The models of secrets, which can be set and never read."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, SecretStr

from penstock_api.models.model import Answer, Given, Tenant, Text


class Secret(Answer):
    tenant: str
    name: str
    master_key: str = Field(description="The id of the master key that it is under.")
    set_by: str
    set_at: datetime


class SetSecret(Given):
    value: SecretStr = Field(
        max_length=65_536, description="4 characters at least. Nobody can read it again."
    )
    tenant: Tenant = "public"
    reason: Text | None = Field(default=None, description="Kept with who set it.")
