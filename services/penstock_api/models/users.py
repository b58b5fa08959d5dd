"""The models of people and their sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field, SecretStr

from penstock_api.models.model import Answer, Given, Tenant

Role = Literal["viewer", "operator", "developer", "administrator"]


class UserRoles(Given):
    roles: list[Role] = Field(
        min_length=1,
        max_length=10,
        description="The rights of the user. A viewer can read. An operator can also start and control "
        "executions, and answer inquiries. A developer can also change definitions. An administrator can also manage access.",
    )
    tenants: list[Tenant] = Field(
        default_factory=list,
        max_length=100,
        description="The tenants in which the roles apply. Empty: all tenants.",
    )


class NewUser(UserRoles):
    name: str = Field(max_length=100, description="A unique name.")
    password: SecretStr = Field(min_length=12, max_length=256, description="At least 12 characters.")


class Password(Given):
    password: SecretStr = Field(
        min_length=12, max_length=256, description="The new password, with at least 12 characters."
    )


class OwnPassword(Given):
    current_password: SecretStr = Field(max_length=1000)
    password: SecretStr = Field(min_length=12, max_length=256, description="The new password.")


class EndedSessions(Answer):
    ended: int = Field(description="The number of sessions that were ended.")


class OwnSession(Answer):
    id: UUID = Field(description="The id of the session.")
    began_at: datetime = Field(description="The instant of the sign-in.")
    seen_at: datetime = Field(description="The instant of its last request, exact to a minute.")
    expires_at: datetime
    address: str = Field(description="The network address of the sign-in.")
    browser: str = Field(description="The `User-Agent` of the sign-in.")
    current: bool = Field(description="True for the session of this request.")


class OldPassword(Given):
    current_password: SecretStr = Field(max_length=1000)


class RecoveryCodes(Answer):
    recovery_codes: list[str] = Field(
        description="Each recovery code replaces the code of the authenticator for one sign-in. The codes are never shown again."
    )


class Code(Given):
    code: str = Field(
        max_length=100, description="Six digits. At the sign-in, a recovery code is accepted too."
    )


class LogIn(Given):
    name: str = Field(max_length=256, description="The user name.")
    password: SecretStr = Field(max_length=1000, description="The password.")


class LoggedIn(Answer):
    name: str = Field(description="The user name.")
    expires_at: datetime
    needs_code: bool = Field(
        description="True: the session grants no access until `POST /api/v1/session/code` has received a code "
        "of the second factor."
    )


class Caller(Answer):
    """The caller and its rights."""

    name: str = Field(
        description="The caller: `user:NAME`, `token:NAME`, or `local access` if the API needs no token."
    )
    scopes: list[str]
    tenants: list[str] | None = Field(description="The tenants that the caller may use; null: all.")
