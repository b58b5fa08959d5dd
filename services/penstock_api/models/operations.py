"""The models for operators: workers, inquiries, dead letters, invariants, findings, tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from penstock.operate.access import LIFETIME_S, OVERLAP_S
from penstock_api.models.executions import ListedExecution
from penstock_api.models.model import Answer, Given, Instant, JsonText, Seconds, Tenant, Text


class Process(Answer):
    """An executor or a worker, by its last heartbeat."""

    id: UUID
    kind: str
    name: str
    state: str
    routes: list[str]
    actions: list[str]
    labels: JsonText
    concurrency: int
    started_at: datetime
    beat_at: datetime
    age: Seconds = Field(description="Seconds since its last heartbeat.")
    held: int
    executors: JsonText = Field(description="Of a worker: numbers of its task executors, by their names.")
    language: str | None = Field(description="Of a worker that calls a gateway.")
    sdk: str | None = Field(description="The library of such a worker, with its version.")


class Lately(Answer):
    """The activity of the last minute."""

    rate: float = Field(description="Ends a second.")
    ended: int
    failed: int
    p50: float | None = Field(description="Seconds from when executions were made to when they ended.")
    p95: float | None


class Standing(Answer):
    """The open executions that wait for the same thing."""

    cause: str = Field(
        description="running, worker, limit, route, timer, executor, human, event, stopping, workflow"
    )
    count: int
    oldest: datetime | None


class Overview(Answer):
    """The state of the whole installation."""

    lately: Lately
    standing: list[Standing]
    processes: list[Process]
    failures: list[ListedExecution] = Field(description="The newest first.")


class Workers(Answer):
    names: list[str]


class Inquiry(Answer):
    """An inquiry. An execution waits for its answer."""

    execution_id: UUID
    status: str
    prompt: str
    assignee: str | None
    schema_: JsonText = Field(alias="schema", description="Of the answer.")
    due_at: datetime | None
    created_at: datetime
    answered_at: datetime | None
    responder: str | None
    response: JsonText


class Reply(Given):
    response: Any
    asked: Instant | None = Field(
        default=None,
        description="`created_at` of the question that is meant: where another is asked by now, 409.",
    )


class DeadLetterSummary(Answer):
    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    bytes: int
    cut_from: int | None = Field(description="Bytes that it had, if only the beginning was kept.")


class DeadLetter(Answer):
    id: UUID
    queue: str
    reason: str
    type: str | None
    message_id: str | None
    count: int
    first_at: datetime
    last_at: datetime
    body: str
    cut_from: int | None
    headers: dict[str, Any]


class Replayed(Answer):
    id: UUID
    became: str = Field(description="What became of it.")


class Invariant(Answer):
    name: str
    says: str
    violations: list[str] = Field(description="Ids that violate it, 20 at the most; none where all is well.")


class Finding(Answer):
    what: str
    state: str = Field(description="ok, warning, bad")
    says: str
    fix: str | None


class AuditedChange(Answer):
    id: int
    at: datetime
    by: str
    role: str = Field(description="The role of the database that wrote it.")
    operation: str = Field(
        description="As the description of this API calls it: `limits_change`; or a command."
    )
    target: str = Field(description="The address that was asked, or the object of the command.")
    outcome: str = Field(description="done, refused, unchanged")
    reason: str | None
    details: dict[str, Any] = Field(description="The values of the change; of a secret, its size.")
    position: int | None = Field(description="Its place in the chain; null until it is sealed.")
    previous: str | None = Field(description="The seal of the row before.")
    seal: str | None


class AuditHead(Answer):
    head: str = Field(description="The newest position and seal, for `penstock audit verify --head`.")
    position: int
    unsealed: int = Field(description="Rows that will be sealed within seconds.")


class Token(Answer):
    name: str
    scopes: list[str]
    tenants: list[str] = Field(description="None: all of them.")
    routes: list[str] = Field(description="That its workers may serve. None: all of them.")
    packs: list[str] = Field(description="Whose actions its workers may run. None: all of them.")
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None = Field(
        description="When it got its secret, where that is not the first one."
    )
    used_at: datetime | None = Field(description="To ten minutes; null: never.")
    old_until: datetime | None = Field(description="The secret before the last rotation is good until then.")


class NewToken(Given):
    name: str = Field(min_length=1, max_length=200)
    scopes: list[str] = Field(
        min_length=1,
        description="read, operate, define, admin; start, answer, start:PACK.NAME; work; or roles.",
    )
    tenants: list[Tenant] = Field(default_factory=list, description="None: all of them.")
    routes: list[Text] = Field(
        default_factory=list, description="That its workers may serve. None: all of them."
    )
    packs: list[Text] = Field(
        default_factory=list, description="Whose actions its workers may run. None: all of them."
    )
    seconds: float | None = Field(
        default=LIFETIME_S, gt=0, le=3e8, description="After which it expires: 90 days. null: never."
    )


class Rotation(Given):
    overlap: float = Field(
        default=OVERLAP_S, ge=0, le=3e7, description="Seconds for which the secret before stays good."
    )
    seconds: float | None = Field(
        default=LIFETIME_S, gt=0, le=3e8, description="After which the new one expires: 90 days. null: never."
    )


class Secret(Answer):
    token: Token
    secret: str = Field(description="To be kept now: nobody can find it out later.")


class Recovery(Answer):
    """A loss that was noticed, and what became of it."""

    kind: str = Field(
        description="`attempt`: lost with its worker; `fire`: of a schedule, whose execution was nowhere."
    )
    at: datetime
    execution: UUID | None
    subject: str = Field(description="The action, or the schedule.")
    tenant: str
    number: int = Field(description="Of the attempt; of a fire, how often it was recovered.")
    worker: str | None
    why: str | None
    status: str | None = Field(description="That of the execution now.")
