"""Trigger rules: whether a task runs, by the outcomes of the tasks before it and by values in the context.

A rule is a JSON value, the same in YAML, in Python and in the stored document:

    all_success                                   one of NAMED
    "{{ vars.total > 100 }}"                      an expression
    {success: a}  {failed: a}  {skipped: a}       how one task ended
    {context: order.total, op: ">", value: 100}   a value of the context
    {all: [...]}  {any: [...]}  {none: [...]}     nested rules, to a bounded depth

Cloacina's JSON of a rule (`{"type": "All", "conditions": [...]}`) is read as one of these, see
`penstock.language.workflows.cloacina_trigger_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, model_serializer, model_validator

from penstock.language.terms.options import Items, Options, Wrong

Named = Literal["all_success", "all_done", "one_success", "one_failed", "none_failed", "always"]
NAMED: tuple[str, ...] = get_args(Named)
"""The named rules over all sources of a task. `always` and `all_done` name the same rule."""

Operator = Literal[
    "==", "!=", ">", "<", ">=", "<=", "in", "not in", "contains", "not contains", "exists", "not exists"
]

MAX_NESTING = 20

SUCCESS, FAILURE, SKIP = "success", "failed", "skipped"
"""The outcomes of a task as its successors see them. An allowed failure is a success here."""


class Form(Options):
    """The base of the mappings that a rule can be."""


class All(Form):
    all: Items[TriggerRule] = Field(min_length=1)


class AnyOf(Form):
    any: Items[TriggerRule] = Field(min_length=1)


class NoneOf(Form):
    none: Items[TriggerRule] = Field(min_length=1)


class Success(Form):
    """The rule that a task succeeded, or failed and is allowed to (`allow_failure`)."""

    success: str


class Failed(Form):
    """The rule that a task failed for good, timed out, was cancelled, or was abandoned."""

    failed: str


class Skipped(Form):
    skipped: str


class ContextComparison(Form):
    """The comparison of a value of the context (the parameters, and over them the variables) with a constant."""

    context: str
    op: Operator
    value: Any = None

    @model_validator(mode="after")
    def _value_where_it_belongs(self) -> ContextComparison:
        has_value, takes_value = "value" in self.model_fields_set, self.op not in ("exists", "not exists")
        if has_value != takes_value:
            raise Wrong(
                f"`{self.op}` takes {'a' if takes_value else 'no'} value",
                "{context: path, op: '>', value: 3}",
            )
        if self.op in ("in", "not in") and not isinstance(self.value, list | tuple | str | dict):
            raise Wrong(f"`{self.op}` takes a list, a text or a mapping as its value")
        return self

    @model_serializer
    def _as_given(self) -> dict[str, Any]:
        """Return the stored form, with the value even if it is null: a comparison without a value could not be read
        again."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set
        }


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    if isinstance(value, Form):
        return next(iter(type(value).model_fields))
    if isinstance(value, dict):
        return next((key for key in _KEYS if key in value), None)
    return None


_KEYS = ("all", "any", "none", "success", "failed", "skipped", "context")

TriggerRule = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[All, Tag("all")]
    | Annotated[AnyOf, Tag("any")]
    | Annotated[NoneOf, Tag("none")]
    | Annotated[Success, Tag("success")]
    | Annotated[Failed, Tag("failed")]
    | Annotated[Skipped, Tag("skipped")]
    | Annotated[ContextComparison, Tag("context")],
    Discriminator(
        _form,
        custom_error_type="rule",
        custom_error_message="a rule is one of " + ", ".join(NAMED) + ", an expression in {{ }}, "
        "or a mapping with one of the keys " + ", ".join(_KEYS),
    ),
]
for _model in (All, AnyOf, NoneOf):
    _model.model_rebuild()


def check_rule(rule: Any) -> Any:
    """Return `rule`. Raises Wrong if a part of it is not a rule, or if it nests too deep."""
    for depth, part in walk(rule):
        if depth > MAX_NESTING:
            raise Wrong(f"nests more than {MAX_NESTING} deep")
        if isinstance(part, str) and part not in NAMED and "{{" not in part:
            raise Wrong(
                f"is not a rule: {part!r}", f"Write one of {', '.join(NAMED)}, or an expression in {{{{ }}}}."
            )
    return rule


def walk(rule: Any, depth: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield every part of a rule with its depth, the rule itself first."""
    yield depth, rule
    for part in parts(rule):
        yield from walk(part, depth + 1)


def parts(rule: Any) -> tuple[Any, ...]:
    """Return the direct parts of a rule, which are rules too."""
    if isinstance(rule, All):
        return rule.all
    if isinstance(rule, AnyOf):
        return rule.any
    return rule.none if isinstance(rule, NoneOf) else ()


def tasks_named(rule: Any) -> set[str]:
    """Return the tasks that the rule names one by one."""
    named = set()
    for _, part in walk(rule):
        if isinstance(part, Success | Failed | Skipped):
            named.add(next(iter(part.model_dump().values())))
    return named


def about_outcomes(rule: Any) -> bool:
    """Return whether the rule is about the outcomes of tasks. Any other rule also requires all_success."""
    return any(
        part in NAMED if isinstance(part, str) else isinstance(part, Success | Failed | Skipped)
        for _, part in walk(rule)
    )


def handled_failures(rule: Any) -> tuple[bool, frozenset[str]]:
    """Return the failures that the rule requires: whether any of the needs, and which tasks. A task that runs by such
    a rule handles them.

    `{none: [{failed: a}]}` requires the opposite, and `none` of `none` requires the failure again.
    """
    anyone, named = False, set()
    stack = [(rule, True)]
    while stack:
        part, positive = stack.pop()
        if positive and part == "one_failed":
            anyone = True
        if positive and isinstance(part, Failed):
            named.add(part.failed)
        inner = positive != isinstance(part, NoneOf)
        stack += [(child, inner) for child in parts(part)]
    return anyone, frozenset(named)


@dataclass(slots=True)
class SourceOutcomes:
    """The outcomes of the sources of a task: the number of sources, the number with each outcome, and the outcomes of
    the sources that the rule names."""

    total: int
    success: int = 0
    failed: int = 0
    skipped: int = 0
    named: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> int:
        return self.total - self.success - self.failed - self.skipped


Leaf = Callable[[Any], bool | None]
"""A function that says whether an expression or a `ContextComparison` holds, or None if that is unknown."""


def holds(rule: Any, outcomes: SourceOutcomes, leaf: Leaf) -> bool | None:
    """Return whether a rule holds. Parts are evaluated only as far as needed, with those about outcomes first.

    Return None if `leaf` returned None and the result depends on it.
    """
    if isinstance(rule, All):
        return _all(rule.all, True, outcomes, leaf)
    if isinstance(rule, NoneOf):
        return _all(rule.none, False, outcomes, leaf)
    if isinstance(rule, AnyOf):
        verdict = _all(rule.any, False, outcomes, leaf)
        return None if verdict is None else not verdict
    if isinstance(rule, Success | Failed | Skipped):
        ((outcome, name),) = rule.model_dump().items()
        return outcomes.named.get(name) == outcome
    if rule in NAMED:
        return _named(rule, outcomes)
    return leaf(rule)


def _all(parts: tuple[Any, ...], expected: bool, outcomes: SourceOutcomes, leaf: Leaf) -> bool | None:
    unsure = False
    # Outcomes come first. A condition over values must not see the missing result of a failed source.
    for part in sorted(parts, key=_reads_values):
        verdict = holds(part, outcomes, leaf)
        if verdict is None:
            unsure = True
        elif verdict != expected:
            return False
    return None if unsure else True


def _reads_values(rule: Any) -> bool:
    return any(
        part not in NAMED if isinstance(part, str) else isinstance(part, ContextComparison)
        for _, part in walk(rule)
    )


def _named(rule: str, outcomes: SourceOutcomes) -> bool:
    if rule == "one_success":
        return outcomes.success > 0
    if rule == "one_failed":
        return outcomes.failed > 0
    if rule == "all_success":
        return outcomes.success == outcomes.total
    return not outcomes.open and (rule != "none_failed" or not outcomes.failed)
