"""The models for operators: workers, inquiries, dead letters, invariants, findings, tokens."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field

from penstock.operate.access import LIFETIME_S, OVERLAP_S
from penstock.store.access.tokens import Token
from penstock_api.models.model import Answer, Given, Instant, Tenant, Text


class Workers(Answer):
    names: list[str] = Field(description="The names of the workers that were changed.")


class InquiryAnswer(Given):
    response: Any = Field(description="The answer, any JSON that the schema of the question accepts.")
    asked: Instant | None = Field(
        default=None,
        description="The `created_at` of the question to answer. If another question is open by now, the answer is "
        "409. null: the open question.",
    )


class ReplayedLetter(Answer):
    id: UUID = Field(description="The id of the dead letter.")
    became: str = Field(
        description="The outcome as text, such as `event ID` for a new event, or `3 on work.gpu` for 3 executions "
        "on that queue."
    )


class AuditHead(Answer):
    head: str = Field(
        description="The newest position in the audit and its seal (a hash over all entries so far), for `penstock "
        "audit verify --head`."
    )
    position: int = Field(
        description="The position of the newest row in the hash chain; 0: the chain is empty."
    )
    unsealed: int = Field(description="The number of rows that are not in the hash chain yet.")


class NewToken(Given):
    name: str = Field(min_length=1, max_length=200, description="A unique name.")
    scopes: list[str] = Field(
        min_length=1,
        description="Scopes (`read`, `operate`, `define`, `admin`, `start`, `start:PACK.NAME`, `publish`, `answer`, `work`), or "
        "names of roles.",
    )
    tenants: list[Tenant] = Field(
        default_factory=list, description="The tenants that the token may use. Empty: all."
    )
    routes: list[Text] = Field(
        default_factory=list,
        description="The routes (work queues) that workers with this token may serve. Empty: all.",
    )
    packs: list[Text] = Field(
        default_factory=list,
        description="The packs (groups of actions) that workers with this token may run. Empty: all.",
    )
    seconds: float | None = Field(
        default=LIFETIME_S,
        gt=0,
        le=3e8,
        description="Seconds after which it expires, by default 90 days. null: never.",
    )


class Rotation(Given):
    overlap: float = Field(
        default=OVERLAP_S, ge=0, le=3e7, description="Seconds for which the old secret stays valid."
    )
    seconds: float | None = Field(
        default=LIFETIME_S,
        gt=0,
        le=3e8,
        description="Seconds after which the new secret expires, by default 90 days. null: never.",
    )


class TokenWithSecret(Answer):
    token: Token = Field(description="The token, without its secret.")
    secret: str = Field(description="The secret. Store it now, because it cannot be read later.")
    warnings: list[str] = Field(
        default=[], description="A sentence for each scope start:REF that matches no applied action so far."
    )
