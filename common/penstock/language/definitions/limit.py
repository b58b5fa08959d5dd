"""Limits on how many executions may run at once, or start within a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from penstock.language.definitions.breaker import Breaker
from penstock.language.definitions.declaration import Declaration
from penstock.language.definitions.qualified_name import is_name, is_ref, ref_of
from penstock.language.terms.budgets import UNIT
from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.costs import cost_terms
from penstock.language.terms.durations import positive_seconds
from penstock.language.terms.options import Count, Options, Wrong
from penstock.language.terms.parameter_paths import KeyPaths
from penstock.language.terms.sources import Source

_RATE = re.compile(r"\s*(\d+)\s*(?:/|per)\s*(\d+)?\s*(s|sec|second|m|min|minute|h|hour|d|day)s?\s*")
_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

EVERYTHING = "*"


class Rate(Options):
    """A rate: at most `count` starts within any `seconds`, which are at most a day."""

    count: Count
    seconds: Annotated[float, Field(gt=0, le=86_400)]


def parse_rate(text: str) -> Rate:
    """Return the rate that a text such as `100/min` writes. Raises Wrong for a text of another form, and
    ValidationError for a rate out of range."""
    match = _RATE.fullmatch(text)
    if match is None or int(match[1]) < 1 or (match[2] and int(match[2]) < 1):
        raise Wrong(f"is not a rate: {text!r}", "Write '100/min', '5/s', '1000/hour', '3/10s'.")
    return Rate.model_validate(
        {"count": int(match[1]), "seconds": int(match[2] or 1) * _PERIODS[match[3][0]]}
    )


def _rate(value: object) -> object:
    return parse_rate(value).model_dump() if isinstance(value, str) else value


def _cost(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Wrong("is not a cost", 'Write a number, or "{{ parameters.tokens }}".')
    cost_terms(value)
    return value


Cost = Annotated[float | int | str, BeforeValidator(_cost)]


def _scope(value: object) -> object:
    scope = getattr(value, "name", None) if type(value).__name__ == "Pack" else ref_of(value)
    if scope in ("global", EVERYTHING):
        return EVERYTHING
    if not (is_name(scope) or is_ref(scope)):
        raise Wrong(
            f"covers nothing: {scope!r}",
            "Write '*', a pack ('shop'), or an action or workflow ('shop.charge').",
        )
    return scope


class Limit(Declaration):
    """`Limit(5)` lets five executions run at once, `Limit(5, by="customer")` five for each customer.
    `by="labels.customer"` groups by a label of the execution. `Limit(90_000, per="1m", cost="{{ parameters.tokens }}")`
    counts costs instead of executions. An attempt holds a slot from its scheduling to its end. With several limits it
    needs a slot of each limit.

    An execution that waits for its next attempt, or deferred itself, holds no slot, and then joins the end of its lane.
    In the `limits` of an action, a limit applies to that action and needs no name. A separate limit has a name and a
    `scope`: `Limit(50, ref="shop.database", scope="shop")`. Raises DefinitionError if a value is not valid."""

    kind: ClassVar[str] = "limit"
    thing: ClassVar[str] = "limit"
    positional: ClassVar[tuple[str, ...]] = ("max",)

    ref: str = ""
    scope: Annotated[str, BeforeValidator(_scope)] | None = None
    """The actions that the limit covers: `*` all actions, a pack all of its actions, or one action or workflow,
    wherever it runs. A workflow is covered only by a limit on that workflow. However often it contains itself, it
    holds one slot, so its tasks never wait for a slot that it holds."""
    max: Count | None = None
    """The number of executions that may run at once. None limits only the rate."""
    by: KeyPaths = ()
    """Paths of parameters, such as `order.customer`, and labels, such as `labels.customer`. Each combination of their values is
    counted separately, and a missing value counts as a value."""
    rate: Annotated[Rate, BeforeValidator(_rate)] | None = None
    """The number of starts within a time: `"100/min"`."""
    when_full: Literal["enqueue", "cancel_new", "cancel_running"] = "enqueue"
    """The reaction to a full limit. enqueue: the execution waits, first come, first served. cancel_new: it is refused.
    cancel_running: the oldest executions, running or waiting, are cancelled, until `max` remain. A refused execution is
    cancelled, with the reason. A retry is never refused."""
    max_waiting: Annotated[int, Field(ge=0, le=INTEGER)] | None = None
    """The number of executions that may wait (for each combination of `by`). Further ones are refused. None: no bound.
    """
    fair: KeyPaths = ()
    """Paths of parameters and labels, as in `by`. Waiting executions with different values take turns. Among several limits the
    first fair one decides."""
    while_waiting: Literal["release", "keep"] = "release"
    """The slot's fate while the execution waits: for an answer, for an end from outside (`later`), or as a durable
    function. If one of its limits says `keep`, the execution keeps all of its slots."""
    cost: Cost | None = None
    """The cost of one execution, which counts instead of 1 in `max` and in `rate`: a number, or a sum of parameters
    such as `"{{ parameters.tokens }}"`. The cost is reserved at admission. A new execution that costs more than the
    whole limit is refused."""
    unit: Annotated[str, Field(pattern=f"^({UNIT})?$")] = ""
    """The unit of the cost, such as `tokens`. An attempt reports its true cost in it: `current().cost(tokens=1234)`, or
    `current().cost(1234)` for a limit without a unit."""
    budget: Annotated[str, Field(pattern=f"^{UNIT}$")] | None = None
    """The unit of the budgets that bound the cost, instead of `max` and `rate`: an execution takes its cost from the budget of
    its tree in this unit. A tree without such a budget is not limited."""
    breaker: Breaker | None = None
    """A breaker instead of `max` and `rate`, for the actions in the scope. The option `breaker` gives an action its own
    breaker."""

    SHORT_FORMS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "burst": (
            "a whole number",
            "With `rate`: the number of starts that may follow each other at once. The rate over a longer time stays the same.",
        ),
        "per": (
            "seconds, or `90s`, `5m`, `2h`, `1d`",
            'With `max`: a rate of `max` starts, or of costs of `max`, within this time. `Limit(100, per="1m")` is '
            '`Limit(rate="100/min")`.',
        ),
    }
    """The options that are folded into `rate`: what each takes, and its meaning."""

    if TYPE_CHECKING:

        def __init__(
            self,
            max: int | None = None,
            *,
            by: str | Sequence[str] = (),
            rate: str | None = None,
            burst: int | None = None,
            when_full: Literal["enqueue", "cancel_new", "cancel_running"] = "enqueue",
            max_waiting: int | None = None,
            fair: str | Sequence[str] = (),
            while_waiting: Literal["release", "keep"] = "release",
            per: str | float | None = None,
            cost: float | str | None = None,
            unit: str = "",
            budget: str | None = None,
            breaker: Breaker | Mapping[str, Any] | None = None,
            ref: str = "",
            scope: object = None,
            description: str = "",
        ) -> None: ...

    @classmethod
    def names(cls) -> list[str]:
        return [*super().names(), *cls.SHORT_FORMS]

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        per = values.pop("per", None)
        if per is not None:
            if (
                values.get("rate") is not None
                or isinstance(values.get("max"), bool)
                or not isinstance(values.get("max"), int)
            ):
                raise Wrong(
                    "per needs max, and cannot be used with a rate",
                    "Write Limit(90_000, per='1m'), or rate='90000/min'.",
                )
            values["rate"] = {"count": values.pop("max"), "seconds": positive_seconds(per)}
        burst = values.pop("burst", None)
        if burst is not None:
            rate = _rate(values.get("rate"))
            if isinstance(rate, Rate):
                rate = rate.model_dump()
            if (
                not isinstance(rate, dict)
                or isinstance(burst, bool)
                or not isinstance(burst, int)
                or burst < 1
            ):
                raise Wrong("burst is a whole number of starts, and needs a rate", "rate='100/min', burst=10")
            # The window lasts until a whole burst is refilled. So it permits the burst at once, at the same average
            # rate.
            values["rate"] = {"count": burst, "seconds": rate["seconds"] * burst / rate["count"]}
        return super().fold(values) if values.get("ref") else values

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.breaker is not None:
            bounding = (self.max, self.rate, self.budget, self.cost, self.max_waiting, self.unit or None)
            if any(bound is not None for bound in bounding) or self.fair or self.when_full != "enqueue":
                raise Wrong(
                    "has a breaker, which excludes max, rate, budget, cost, unit, max_waiting, fair and when_full",
                    "Declare them in a second limit.",
                )
            if self.breaker.by:
                raise Wrong("breaker: by belongs to the limit", "Limit(breaker={...}, by='host', ...)")
            return self._named()
        if self.budget is not None:
            bounds = {
                "max": self.max,
                "rate": self.rate,
                "by": self.by,
                "fair": self.fair,
                "max_waiting": self.max_waiting,
            }
            names = [name for name, value in bounds.items() if value not in (None, ())]
            names += ["when_full"] * (self.when_full != "enqueue")
            if names or self.unit not in ("", self.budget) or self.cost is None:
                raise Wrong(
                    "with a budget, has a cost and no other bound",
                    "Limit(budget='tokens', cost='{{ parameters.tokens }}'); use a second limit for the rest.",
                )
            return self
        if self.unit and self.cost is None:
            raise Wrong(
                "has a unit but no cost", 'Give the cost of an execution: cost="{{ parameters.tokens }}".'
            )
        if self.cost is not None and self.when_full == "cancel_running":
            raise Wrong(
                "when_full: cancel_running counts executions, and not their cost",
                "Use enqueue or cancel_new under a limit with a cost.",
            )
        if self.when_full == "cancel_running" and self.max is None and self.rate is not None:
            raise Wrong(
                "when_full: cancel_running needs max",
                "A cancelled execution releases its slot, but its start still counts for the rate. Give "
                "max, or use enqueue or cancel_new.",
            )
        if self.max is None and self.rate is None:
            raise Wrong("limits nothing", "Give max, such as Limit(5), or rate, such as rate='100/min'.")
        return self._named()

    def _named(self) -> Self:
        """Check the ref and the scope."""
        if self.ref and not is_ref(self.ref):
            raise Wrong(f"ref: is not a ref: {self.ref!r}", "Write pack.name, in small letters.")
        if bool(self.ref) != (self.scope is not None):
            raise Wrong(
                "has a scope but no ref" if self.scope else "has a ref but no scope",
                "A separate limit has both: Limit(50, ref='shop.database', scope='shop'). A limit of an action has neither.",
            )
        return self

    def of_action(self, action: str, source: Source) -> Limit:
        """Return this limit as a definition that covers `action`."""
        if self.ref:
            raise source.wrong(
                f"action {action}: its limit {self.ref} has a ref and a scope of its own",
                "Leave both out, or declare the limit outside of the action.",
            )
        by = f"by_{'_'.join(self.by)}" if self.by else "all"
        if self.cost is not None:
            by = f"budget_{self.budget}" if self.budget else f"{by}_{self.unit or 'cost'}"
        limit = self.model_copy(
            update={"ref": f"{action}.{re.sub('[^a-z0-9]+', '_', by.lower())}", "scope": action}
        )
        limit._source = self._source if self._source.line else source
        return limit

    @classmethod
    def of_breaker(cls, breaker: Breaker, action: str, source: Source) -> Limit:
        """Return the limit that stands for the breaker of `action`."""
        limit = cls.model_construct(
            ref=f"{action}.breaker",
            scope=action,
            by=breaker.by,
            breaker=breaker.model_copy(update={"by": ()}),
        )
        limit._source = source
        return limit

    def parts(self) -> Iterator[Limit]:
        """Yield the limit, unless it is meant to be used in actions only."""
        if self.ref:
            yield self
