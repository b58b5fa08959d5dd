"""The models of secrets, which can be set and never read."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, SecretStr

from penstock_api.models.model import Answer, Given, Tenant, Text


class Secret(Answer):
    tenant: str
    name: str
    master_key: str = Field(description="The id of its master key.")
    set_by: str
    set_at: datetime


class SetSecret(Given):
    value: SecretStr = Field(
        max_length=65_536, description="At least 4 characters. The value can never be read again."
    )
    tenant: Tenant = "public"
    reason: Text | None = Field(default=None, description="The reason, stored with the author.")
