"""The models of limits and lanes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.store.admission.limits import LimitInForce
from penstock_api.models.model import Answer, Given


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


class Removed(Answer):
    ref: str
    in_force: LimitInForce | None = Field(
        description="The declared limit, which is in force again; null if there is none."
    )
