"""The models of people and their sessions."""

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
    totp_since: datetime | None = Field(description="Since when a second factor is asked for; null: none is.")
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


class OldPassword(Given):
    current_password: SecretStr = Field(max_length=1000)


class Totp(Answer):
    """The second factor of the caller."""

    since: datetime | None = Field(description="Since when it is asked for; null: it is not.")
    recovery_codes: int = Field(description="That are left.")


class NewTotp(Answer):
    """A new second factor that is not confirmed yet by its first code."""

    secret: str = Field(description="In base32, to type into an authenticator.")
    uri: str = Field(description="The same as an `otpauth:` address, for a QR code.")


class RecoveryCodes(Answer):
    recovery_codes: list[str] = Field(
        description="Each is good once, in place of a code. They are never shown again."
    )


class Code(Given):
    code: str = Field(max_length=100, description="Six digits, or at a log-in a recovery code.")


class LogIn(Given):
    name: str = Field(max_length=256)
    password: SecretStr = Field(max_length=1000)


class LoggedIn(Answer):
    name: str
    expires_at: datetime
    needs_code: bool = Field(
        description="The session grants no access until `POST /api/v1/session/code` has brought the code of the second factor."
    )


class Who(Answer):
    """The caller and its rights."""

    name: str
    scopes: list[str]
    tenants: list[str] | None = Field(description="null: all of them.")
