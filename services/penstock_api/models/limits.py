"""The models of limits and lanes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.store.admission.limits import LimitInForce
from penstock_api.models.model import Answer, Given


class SetLimit(Given):
    """A change of a limit. An omitted option stays as it is; null removes an option."""

    max: int | None = Field(
        default=None,
        ge=1,
        le=2_000_000_000,
        description="The number of executions that may run at once, or, with `cost`, the maximum of their "
        "costs together. null: there is only the rate.",
    )
    scope: str | None = Field(
        default=None,
        description="The actions that it covers: `*` (all), a pack, an action or workflow, or one task "
        "(`shop.fulfil.charge`). A new limit needs it. null is refused.",
    )
    by: list[str] | None = Field(
        default=None,
        description="The parameters and labels (`labels.customer`) by which slots are counted: each combination of values has "
        "its own slots. null: all are counted together.",
    )
    rate: str | None = Field(
        default=None, description="The maximum number of starts within a time: 100/min. null: no rate."
    )
    burst: int | None = Field(
        default=None,
        ge=1,
        le=2_000_000_000,
        description="With `rate`: the number of starts that may follow each other at once. null: as many "
        "as the rate allows.",
    )
    when_full: Literal["enqueue", "cancel_new", "cancel_running"] | None = Field(
        default=None,
        description="The treatment of a new execution if no slot is free. `enqueue` (default): it waits. "
        "`cancel_new`: it is cancelled. `cancel_running`: the oldest one is cancelled. null: the default.",
    )
    max_waiting: int | None = Field(
        default=None,
        ge=0,
        le=2_000_000_000,
        description="The number of executions that may wait, for each combination of `by`. Further ones "
        "are cancelled. null: no bound.",
    )
    fair: list[str] | None = Field(
        default=None,
        description="The parameters and labels whose values take turns: the long queue of one customer does not "
        "delay another customer. null: first come, first served.",
    )
    while_waiting: Literal["release", "keep"] | None = Field(
        default=None,
        description="The fate of a slot while its execution waits: for an answer, for an end from outside, or as "
        "a durable function. `release` (default) or `keep`. null: the default.",
    )
    cost: str | float | None = Field(
        default=None,
        description="The cost of an execution: 2, or {{ parameters.tokens }}. null: each execution counts as 1.",
    )
    unit: str | None = Field(default=None, description="The unit of the cost, such as tokens. null: no unit.")


class RemovedLimit(Answer):
    ref: str = Field(description="The name of the limit.")
    in_force: LimitInForce | None = Field(
        description="The declared limit, which is in force again; null if there is none."
    )
