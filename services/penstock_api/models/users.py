"""People: who they are, and their sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field, SecretStr

from penstock_api.models.model import Answer, Given, Tenant

Role = Literal["viewer", "operator", "developer", "administrator"]


class User(Answer):
    name: str
    roles: list[str] = Field(description="One by one for `tenants`.")
    tenants: list[str] = Field(description="An empty one: all tenants.")
    created_by: str
    created_at: datetime
    sessions: int = Field(description="That are open.")


class Roles(Given):
    roles: list[Role] = Field(min_length=1, max_length=10)
    tenants: list[Tenant] = Field(default_factory=list, max_length=100, description="None: all tenants.")


class NewUser(Roles):
    name: str = Field(max_length=100)
    password: SecretStr = Field(min_length=12, max_length=256)


class Password(Given):
    password: SecretStr = Field(min_length=12, max_length=256)


class OwnPassword(Given):
    current_password: SecretStr = Field(max_length=1000)
    password: SecretStr = Field(min_length=12, max_length=256, description="The new one.")


class Ended(Answer):
    ended: int = Field(description="Sessions that are over.")


class OwnSession(Answer):
    id: UUID
    began_at: datetime
    seen_at: datetime = Field(description="Of its last request, exact to a minute.")
    expires_at: datetime
    address: str = Field(description="Of the log-in.")
    browser: str = Field(description="`User-Agent` of the log-in.")
    current: bool = Field(description="It is the session of this request.")


class LogIn(Given):
    name: str = Field(max_length=256)
    password: SecretStr = Field(max_length=1000)


class LoggedIn(Answer):
    name: str
    expires_at: datetime


class Who(Answer):
    """The caller and its rights."""

    name: str
    scopes: list[str]
    tenants: list[str] | None = Field(description="null: all of them.")
