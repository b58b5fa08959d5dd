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
    executors: JsonText = Field(description="For a worker: the figures of its task executors, by name.")
    language: str | None = Field(description="For a worker that calls a gateway: its language.")
    sdk: str | None = Field(description="For a worker that calls a gateway: its library, with the version.")


class Lately(Answer):
    """The activity of the last minute."""

    rate: float = Field(description="The number of ended executions per second.")
    ended: int
    failed: int
    p50: float | None = Field(description="Seconds from the creation of executions to their end.")
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
    failures: list[ListedExecution] = Field(description="The newest failures, newest first.")


class Workers(Answer):
    names: list[str]


class Inquiry(Answer):
    """An inquiry. An execution waits for its answer."""

    execution_id: UUID
    status: str
    prompt: str
    assignee: str | None
    schema_: JsonText = Field(alias="schema", description="The author of the answer.")
    due_at: datetime | None
    created_at: datetime
    answered_at: datetime | None
    responder: str | None
    response: JsonText


class Reply(Given):
    response: Any
    asked: Instant | None = Field(
        default=None,
        description="The `created_at` of the question to answer. If another question is open by now, the answer is 409.",
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
    cut_from: int | None = Field(
        description="The size of the whole in bytes, if only the beginning was kept."
    )


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
    became: str = Field(description="The outcome.")


class Invariant(Answer):
    name: str
    says: str
    violations: list[str] = Field(description="At most 20 ids that violate it; none if all is well.")


class Finding(Answer):
    what: str
    state: str = Field(description="ok, warning, bad")
    says: str
    fix: str | None


class AuditedChange(Answer):
    id: int
    at: datetime
    by: str
    role: str = Field(description="The database role that wrote the row.")
    operation: str = Field(
        description="The id of the operation in the OpenAPI description, such as `limits_change`; or a command."
    )
    target: str = Field(description="The requested address, or the object of the command.")
    outcome: str = Field(description="done, refused, unchanged")
    reason: str | None
    details: dict[str, Any] = Field(description="The values of the change. Of a secret, only its size.")
    position: int | None = Field(description="Its position in the chain; null until it is sealed.")
    previous: str | None = Field(description="The seal of the row before.")
    seal: str | None


class AuditHead(Answer):
    head: str = Field(description="The newest position and seal, for `penstock audit verify --head`.")
    position: int
    unsealed: int = Field(description="The number of rows that are not sealed yet.")


class Token(Answer):
    name: str
    scopes: list[str]
    tenants: list[str] = Field(description="The tenants; without any, all tenants.")
    routes: list[str] = Field(
        description="The routes (work queues) that workers with this token may serve. Empty: all."
    )
    packs: list[str] = Field(
        description="The packs with the actions that its workers may run; without any, all packs."
    )
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None = Field(
        description="The instant of the last rotation; null if there was none."
    )
    used_at: datetime | None = Field(
        description="The instant of its last use, to ten minutes; null if it was never used."
    )
    old_until: datetime | None = Field(
        description="The instant until which the secret before the last rotation is valid."
    )


class NewToken(Given):
    name: str = Field(min_length=1, max_length=200)
    scopes: list[str] = Field(
        min_length=1,
        description="read, operate, define, admin; start, answer, start:PACK.NAME; work; or roles.",
    )
    tenants: list[Tenant] = Field(default_factory=list, description="The tenants; without any, all tenants.")
    routes: list[Text] = Field(
        default_factory=list,
        description="The routes (work queues) that workers with this token may serve. Empty: all.",
    )
    packs: list[Text] = Field(
        default_factory=list,
        description="The packs with the actions that its workers may run; without any, all packs.",
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


class Secret(Answer):
    token: Token
    secret: str = Field(description="The secret. Store it now, since it cannot be read later.")


class Recovery(Answer):
    """A loss that was noticed, and what became of it."""

    kind: str = Field(
        description="`attempt`: lost with its worker. `fire`: of a schedule, with a lost execution."
    )
    at: datetime
    execution: UUID | None
    subject: str = Field(description="The action, or the schedule.")
    tenant: str
    number: int = Field(description="The number of the attempt; for a fire, the number of its recoveries.")
    worker: str | None
    why: str | None
    status: str | None = Field(description="The present status of the execution.")
