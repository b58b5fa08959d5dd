"""Rules: each starts an action, with parameters, for each event of a trigger that meets its condition, or for each match of its
window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, StrictBool, model_validator

from penstock.language.definitions.declaration import Declaration
from penstock.language.definitions.event_paths import BurstPaths, at_most_a_day
from penstock.language.definitions.qualified_name import Ref, TriggerRef
from penstock.language.definitions.window import Window
from penstock.language.expressions.template_checks import Condition, Templates
from penstock.language.terms.budgets import Budget, WhenSpent
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY, INTEGER
from penstock.language.terms.debounce import Keep
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Wrong
from penstock.language.terms.outside_names import TENANT
from penstock.language.terms.parameter_paths import LABELS, is_label
from penstock.language.terms.run_labels import HINT, MAX_LABELS, check_key

Priority = Annotated[int, Field(ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)]
"""The priority of an execution that waits for a slot. Higher ones go first, and 0 is the default."""
Bound = Annotated[int, Field(strict=True, ge=1, le=INTEGER)]
Tenant = Annotated[str, Field(strict=True, pattern=TENANT)]


def _at_most_labels(labels: dict[str, Any]) -> dict[str, Any]:
    if len(labels) > MAX_LABELS:
        raise Wrong(f"has {len(labels)} labels, and may have {MAX_LABELS}", HINT)
    for key in labels:
        check_key(key)
    return labels


class Rule(Declaration):
    """A rule. `when` is a condition over `event` and `payload` (`payload.amount > 100`). Without it every event
    matches. Texts in `params` may hold templates over the same names (`"{{ payload.customer }}"`).

    Raises DefinitionError for a condition or a template that does not parse.
    """

    kind: ClassVar[str] = "rule"
    thing: ClassVar[str] = "rule"
    shorten: ClassVar[tuple[str, ...]] = ("ref", "trigger", "action")

    trigger: TriggerRef | None = None
    """The trigger of its events: one of your own, or a system trigger such as `penstock.execution.failed`. None: the rule
    has a window."""
    action: Ref
    """The action or workflow to start."""
    when: Condition | None = None
    params: Templates = Field(default_factory=dict)
    labels: Annotated[Templates, AfterValidator(_at_most_labels)] = Field(default_factory=dict)
    """The labels of the executions that the rule starts. Texts may hold templates over `event` and `payload`."""
    enabled: StrictBool = True
    """The initial state, when the rule is first applied. `penstock rules enable|disable` changes it afterwards."""
    tenant: Tenant | None = None
    """The tenant whose events the rule looks at. None: all tenants."""
    priority: Priority = 0
    """The priority of the executions that the rule starts."""
    expires: PositiveDuration | None = None
    """The seconds after which an execution that the rule started ends as `timeout`, if it has not begun."""
    budget: Budget | None = None
    """The budgets of each execution that the rule starts, and of all of its tree: an amount for each unit."""
    when_spent: WhenSpent = "refuse"
    """The reaction to a spent budget. refuse: an execution that needs more than the rest is cancelled. wait: it waits
    until a person raises the budget."""
    max_depth: Bound | None = None
    """The number of rules, one after the other, in the chain of events that an execution of this rule begins. None: no bound."""
    max_descendants: Bound | None = None
    """The number of executions that rules start in the chain that an execution of this rule begins, with that execution. None: no
    bound."""

    debounce: Annotated[PositiveDuration, AfterValidator(at_most_a_day)] | None = None
    """A burst of matching events closes after this time without another matching event, at most a day. The rule then starts one
    execution for the burst. None: it starts one for each event."""
    by: BurstPaths = ()
    """Paths within `event` and `payload`, such as `payload.doc`, and labels of the rule, such as `labels.customer`. Events with
    different values there are in different bursts."""
    at_most: Annotated[PositiveDuration, AfterValidator(at_most_a_day)] | None = None
    """The time after its first event at which a burst closes in any case, at most a day."""
    keep: Keep = "last"
    """The event of a burst from which the parameters are made. all: the last one, and `payloads` is the list of all payloads."""
    window: Window | None = None
    """The pattern of several events, for which the rule starts one execution, instead of `trigger` and `when`."""

    if TYPE_CHECKING:

        def __init__(
            self,
            ref: str,
            *,
            trigger: object = None,
            action: object,
            when: str | None = None,
            params: Mapping[str, Any] = {},
            labels: Mapping[str, Any] = {},
            enabled: bool = True,
            tenant: str | None = None,
            priority: int = 0,
            expires: object = None,
            budget: Mapping[str, float] | None = None,
            when_spent: WhenSpent = "refuse",
            max_depth: int | None = None,
            max_descendants: int | None = None,
            debounce: object = None,
            by: str | Sequence[str] = (),
            at_most: object = None,
            keep: Keep = "last",
            window: Window | None = None,
            description: str = "",
        ) -> None: ...

    @property
    def triggers(self) -> tuple[str, ...]:
        """Return the triggers of its events, each once."""
        if self.window is not None:
            return tuple(dict.fromkeys(part.trigger for part in self.window.parts))
        return (self.trigger,) if self.trigger else ()

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if (self.trigger is None) == (self.window is None):
            raise Wrong(
                "has trigger and window" if self.trigger else "has no trigger",
                "Write trigger for single events, or window for several of them.",
            )
        if self.window is not None and (self.when is not None or self.debounce is not None):
            raise Wrong("has when or debounce with window", "Write `when` at the parts of the window.")
        if self.debounce is None and (self.by or self.at_most is not None or self.keep != "last"):
            raise Wrong("has by, at_most or keep without debounce", "Add the time: debounce='5s'.")
        for key in (path.removeprefix(LABELS) for path in self.by if is_label(path)):
            if key not in self.labels:
                hint = f"Add it to the rule: labels={{'{key}': '{{{{ payload.{key} }}}}'}}."
                raise Wrong(f"has by='labels.{key}' without that label", hint)
        return self
