"""The models of limits and lanes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from penstock_api.models.model import Answer, Given, JsonText


class Limit(Answer):
    """A limit that is in force."""

    ref: str
    scope: str
    max: int | None
    by: list[str]
    fair: list[str]
    when_full: str
    max_waiting: int | None
    rate_count: int | None
    rate_seconds: float | None
    while_waiting: str
    cost: str | None = Field(
        description="What an execution costs: a number, or a sum of parameters. Null: each counts as 1."
    )
    unit: str = Field(description="The unit of the cost, or empty.")
    budget: bool = Field(description="Whether the budgets of trees in that unit bound it.")
    breaker: JsonText = Field(description="The thresholds, if it is a breaker: failures, of, within, probe.")
    by_hand: bool
    declared: JsonText = Field(description="The declared limit; null if definitions declare none.")
    held: int
    used: float | None = Field(description="What the held slots cost together; null without a cost.")
    waiting: int
    covers: int = Field(
        description="The number of covered namespaces whose actions were started at least once."
    )


class LimitTotals(Answer):
    """The counts of a limit since an instant, at most a day ago."""

    ref: str
    enqueued: int = Field(description="The number of attempts that asked for a slot.")
    admitted: int = Field(description="The number of attempts that got a slot.")
    completed: int = Field(
        description="The number of attempts that gave their slot back, whatever their outcome."
    )
    held: int
    waiting: int
    since: datetime


class Holder(Answer):
    execution_id: UUID
    namespace: str
    status: str
    group_value: str = Field(description="The parameter values of its key.")
    since: datetime


class Waiter(Answer):
    execution_id: UUID
    namespace: str
    group_value: str
    priority: int
    since: datetime


class SetLimit(Given):
    """A change of a limit. An omitted option stays as it is; null removes an option."""

    max: int | None = Field(default=None, ge=1, le=2_000_000_000)
    scope: str | None = None
    by: list[str] | None = None
    rate: str | None = Field(default=None, description="The maximum number of starts within a time: 100/min.")
    burst: int | None = Field(default=None, ge=1, le=2_000_000_000)
    when_full: Literal["enqueue", "cancel_new", "cancel_running"] | None = None
    max_waiting: int | None = Field(default=None, ge=0, le=2_000_000_000)
    fair: list[str] | None = None
    while_waiting: Literal["release", "keep"] | None = None
    cost: str | float | None = Field(
        default=None, description="What an execution costs: 2, or {{ parameters.tokens }}."
    )
    unit: str | None = Field(default=None, description="The unit of the cost, such as tokens.")


class Line(Answer):
    """A lane of executions that wait for a key of a limit, or for workers."""

    gate: str
    limit: str | None
    group_value: str | None
    max: int | None
    by: list[str] | None
    rate_count: int | None
    rate_seconds: float | None
    namespace: str | None
    held: int
    longest: float | None
    waiting: int
    oldest: float | None
    per_minute: float | None


class Queue(Answer):
    """The queue of a route: the numbers of waiting and running executions, and of workers that serve it."""

    queue: str
    requested: int
    ready: int
    running: int
    oldest: float | None = Field(description="Seconds for which the oldest one has waited.")
    workers: int
    slots: int


class Removed(Answer):
    ref: str
    in_force: Any = Field(description="The declared limit, which is in force again; null if there is none.")
