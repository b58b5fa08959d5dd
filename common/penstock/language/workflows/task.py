"""The document of a task of a workflow: its work, its options, and its transitions.

Semantics: docs/workflows.md.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from penstock.errors import DefinitionError
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.qualified_name import Ref, TriggerRef
from penstock.language.policies.policies import Recovery, RetryPolicy, Timeouts
from penstock.language.schemas import payload_schema
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Items, Options, Wrong
from penstock.language.terms.routing import RoutingRule
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.cloacina_trigger_rules import translated

NOOP, FAIL = "noop", "fail"
"""The actions that the executor runs itself. `noop` returns its input as its result; `fail` fails with its input's
`message`."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def _name(value: object) -> object:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        hint = "A name is made of letters, digits and _, so that expressions can say `tasks.<name>`."
        raise Wrong(f"is not a name: {value!r}", hint)
    return value


def _expression(value: object) -> object:
    if isinstance(value, str) and "{{" not in value:
        raise Wrong("is a text without an expression", "Write an expression in {{ }}.")
    return value


def _several(value: object) -> object:
    return [value] if isinstance(value, str | dict | Options) else value


def _trigger_rule(rule: object) -> object:
    return translated(rule)


def _route(value: str) -> str:
    if "{{" not in value:
        try:
            RoutingRule("**", value)
        except DefinitionError as error:
            raise Wrong(error.message, error.hint) from None
    return value


Name = Annotated[str, BeforeValidator(_name)]
Names = Annotated[Items[Name], BeforeValidator(_several)]
Template = Annotated[str, AfterValidator(_expression)]
"""A pydantic type for a text that is one expression, such as `{{ parameters.files }}`."""
Limits = Annotated[Items[Limit], BeforeValidator(_several)]


class Transition(Options):
    """A transition from a task after its end. Without `when` it is taken if the task succeeded. `when: true` takes it
    always."""

    when: str | bool = "succeeded()"
    publish: dict[Name, Any] | Template = Field(default_factory=dict)
    do: Names = ()

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Transition:
        if not self.do and not self.publish:
            raise Wrong("leads nowhere", "Add `do`, or `publish`.")
        if len(set(self.do)) < len(self.do):
            raise Wrong("names a task twice in `do`")
        return self


class WaitForEvent(Options):
    """A wait for an event of a trigger. The result is the event. `filter` is a condition over `event`."""

    trigger: TriggerRef
    filter: str | None = None
    timeout: PositiveDuration | None = None


class Inquiry(Options):
    """A question to a human. The result is the answer. Texts and `default` may have expressions.

    `schema` is the JSON Schema of the answer. After `timeout` the answer is `default`, and without a default the task
    ends as `timeout`.
    """

    prompt: str
    answer: Annotated[dict[str, Any], BeforeValidator(payload_schema)] = Field(
        default_factory=dict, alias="schema"
    )
    assignee: str | None = None
    timeout: PositiveDuration | None = None
    default: Any = None


def _tolerate(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}%|100%", value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise Wrong(f"is not a number of items: {value!r}", "Write 3, or '10%'.")


class ItemFailures(Options):
    """The outcome of a fan-out with failed items.

    With up to `tolerate` failures (a number, or a text such as `10%`) the task completes. With more it fails: after
    all its items (`finish`), after those that have begun (`stop`), or after cancelling these (`cancel`).
    """

    tolerate: Annotated[int | str, BeforeValidator(_tolerate)] = 0
    then: Literal["finish", "stop", "cancel"] = "finish"

    def tolerated(self, total: int) -> int:
        """Return how many of `total` items may fail."""
        if isinstance(self.tolerate, int):
            return self.tolerate
        return total * int(self.tolerate[:-1]) // 100


class Step(Options):
    """The work of a task, without its place in the graph. The `on_exit` task consists of a step alone.

    `retry`, `timeouts` and `recovery` replace those of the action. `timeout` is short for `timeouts.attempt`.
    """

    thing: ClassVar[str] = "step"

    action: Ref | Literal["noop", "fail"] | None = None
    workflow: Ref | None = None
    wait_for_event: WaitForEvent | None = None
    inquiry: Inquiry | None = None
    input: dict[str, Any] | Template = Field(default_factory=dict)
    with_items: list[Any] | Template | None = None
    concurrency: Annotated[int, Field(strict=True, ge=1)] | Template | None = None
    batch_size: Annotated[int, Field(strict=True, ge=1)] | None = None
    item_failures: ItemFailures = ItemFailures()
    publish: dict[Name, Any] | Template = Field(default_factory=dict)
    delay: PositiveDuration | Template | None = None
    route: Annotated[str, AfterValidator(_route)] | None = None
    limits: Limits = ()
    retry: RetryPolicy | None = None
    timeouts: Timeouts | None = None
    recovery: Recovery | None = None
    allow_failure: bool = False

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "timeout" in values:
            whole = values.get("timeouts", {})
            if not isinstance(whole, dict) or "attempt" in whole:
                raise Wrong("has both timeout and timeouts", "Write it inside timeouts alone.")
            values["timeouts"] = {**whole, "attempt": values.pop("timeout")}
        return values

    @classmethod
    def names(cls) -> list[str]:
        return [*super().names(), "timeout"]

    @property
    def kind(self) -> Literal["action", "workflow", "event", "inquiry", "noop", "fail"]:
        if self.action in (NOOP, FAIL):
            return self.action  # type: ignore[return-value]
        if self.workflow:
            return "workflow"
        return "event" if self.wait_for_event else "inquiry" if self.inquiry else "action"

    @property
    def refers_to(self) -> str | None:
        """Return the ref of the action, workflow or trigger that the step names, or None."""
        return self.wait_for_event.trigger if self.wait_for_event else self.action or self.workflow

    @model_validator(mode="after")
    def _one_thing_to_do(self) -> Step:
        ways = [way for way in ("action", "workflow", "wait_for_event", "inquiry") if getattr(self, way)]
        if len(ways) != 1:
            raise Wrong(
                f"has {' and '.join(ways)}" if ways else "does nothing",
                "A task has one of action, workflow, wait_for_event and inquiry. A task that only joins or publishes "
                "has `action: noop`.",
            )
        waits, at_once = self.kind in ("event", "inquiry"), self.kind in (NOOP, FAIL)
        self._refuse(waits, "input route retry timeouts recovery limits", "a waiting task has no such option")
        self._refuse(
            at_once,
            "with_items route delay retry timeouts recovery limits",
            f"the executor itself ends `{self.action}` at once",
        )
        self._refuse(
            self.kind == "workflow",
            "recovery route retry",
            "a workflow has no worker, but its tasks have workers",
        )
        if self.kind == "workflow" and self.timeouts is not None and self.timeouts.waiting is not None:
            raise Wrong(
                "has `timeouts.waiting`, but a workflow asks no questions itself",
                "Set it on the task that asks.",
            )
        self._refuse(self.with_items is None, "concurrency batch_size item_failures", "it needs with_items")
        return self

    def _refuse(self, condition: bool, fields: str, why: str) -> None:
        for field in fields.split() if condition else ():
            if getattr(self, field) != type(self).model_fields[field].get_default(call_default_factory=True):
                raise Wrong(f"has `{field}`, which cannot be used here: {why}", f"Remove `{field}`.")


class Task(Step):
    """A step with its place in the graph. A task comes after its `needs` and after the tasks that name it in `next`.
    `when` and `join` say under which conditions it runs."""

    name: Name
    needs: Names = ()
    when: Annotated[
        Annotated[task_trigger_rules.TriggerRule, AfterValidator(task_trigger_rules.check_rule)] | None,
        BeforeValidator(_trigger_rule),
    ] = None
    join: Literal["all", "any"] | Annotated[int, Field(strict=True, ge=1)] | None = None
    next: Items[Transition] = ()

    @model_validator(mode="after")
    def _once(self) -> Task:
        if len(set(self.needs)) < len(self.needs):
            raise Wrong("names a task twice in `needs`")
        return self


def policies_of(step: Step) -> dict[str, Any]:
    """Return the policies of a task for retries, timeouts and lost workers. They replace those of its action, except
    timeouts that the task does not name."""
    policies: dict[str, Any] = {}
    # Each policy replaces the action's policy completely: a default of the task's policy may differ from the action's
    # value.
    for name in ("retry", "recovery"):
        if (policy := getattr(step, name)) is not None:
            policies[name] = policy.model_dump(mode="json")
    if step.timeouts is not None:
        times = step.timeouts.written()
        if step.kind == "workflow" and "attempt" in times:
            # A workflow has one attempt, so the attempt's timeout is that of the whole run.
            times = {"total": times["attempt"], **{name: t for name, t in times.items() if name != "attempt"}}
        policies["timeouts"] = times
    return policies
