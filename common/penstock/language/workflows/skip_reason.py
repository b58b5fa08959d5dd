"""The reason why a task was skipped, from its stored state: for people that look at a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.language.moves import COMPLETED, SKIPPED
from penstock.language.workflows import task_trigger_rules as rules
from penstock.language.workflows.graph import Graph, Node

MAX_NAMES = 3
"""The maximum number of tasks that a reason names."""
MAX_CONDITION = 200
"""The maximum characters of a condition in a reason."""
BY_HAND = "an operator skipped it"


@dataclass(slots=True)
class SkippedTask:
    """The stored state of a skipped task: the ends that had arrived when it was skipped, by outcome. `named` has the
    outcomes of the tasks that its rule names, by their index. `by_hand`: an operator skipped it."""

    success: int = 0
    failed: int = 0
    skipped: int = 0
    named: Mapping[int, str] = field(default_factory=dict)
    by_hand: bool = False


def skip_reason(
    graph: Graph, node: Node, state: SkippedTask, statuses: Mapping[int, str | None]
) -> str | None:
    """Return why a task was skipped, as a clause. `statuses` has those of the other tasks by their index. None: the state
    does not say it, as after a rerun that has kept the skip."""
    if state.by_hand:
        return BY_HAND
    if not node.sources:
        return _condition(node)
    if not node.is_decidable(state.success, state.failed, state.skipped):
        return None
    if state.success < node.early_success:
        return _too_few(graph, node, state)
    if node.rule is None:
        return None
    outcomes = rules.SourceOutcomes(len(node.sources), state.success, state.failed, state.skipped)
    outcomes.named = {graph[source].name: outcome for source, outcome in state.named.items()}
    if rules.holds(node.rule, outcomes, lambda _: None) is None:  # the outcomes alone do not decide it
        return _condition(node)
    return _by_outcomes(graph, node, statuses)


def _condition(node: Node) -> str | None:
    when = getattr(node.step, "when", None)
    return None if when is None else f"its condition is false: {_cut(shown_rule(when))}"


def _too_few(graph: Graph, node: Node, state: SkippedTask) -> str:
    if not state.success:
        routing = [source for source in node.sources if node.index in (graph[source].routes or ())]
        if len(routing) == len(node.sources):
            return f"{_named(graph, routing, 'or')} did not choose this task (`next`)"
        return f"none of the tasks before it succeeded, and it needs {node.early_success}"
    return f"only {state.success} of the tasks before it succeeded, and it needs {node.early_success}"


def _by_outcomes(graph: Graph, node: Node, statuses: Mapping[int, str | None]) -> str:
    routing, skipped, failed = [], [], []
    for source in node.sources:
        sender = graph[source]
        status = statuses.get(source)
        if sender.routes and node.index in sender.routes:
            routing.append(source)
        elif status == SKIPPED:
            skipped.append(source)
        elif status != COMPLETED and not sender.step.allow_failure:
            failed.append(source)
    when = getattr(node.step, "when", None)
    if when is not None and rules.about_outcomes(when):
        return f"its condition is false: {_cut(shown_rule(when))}"
    clauses = []
    if failed:
        clauses.append(f"{_named(graph, failed)} did not succeed")
    if skipped:
        clauses.append(f"{_named(graph, skipped)} {'was' if len(skipped) == 1 else 'were'} skipped")
    if not clauses and routing:
        clauses.append(f"{_named(graph, routing, 'or')} did not choose this task (`next`)")
    if not clauses:
        clauses.append("a task before it did not succeed")
    if when is None:
        return "; ".join(clauses)
    return f"{'; '.join(clauses)}. The condition of {node.name} has no rule about outcomes, so each task before it must succeed"


def _named(graph: Graph, tasks: list[int], word: str = "and") -> str:
    names = [graph[task].name for task in tasks[:MAX_NAMES]]
    if len(tasks) > MAX_NAMES:
        return f"{', '.join(names)} {word} {len(tasks) - MAX_NAMES} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def shown_rule(rule: Any, *, inside: bool = False) -> str:
    """Return a rule as a text for people: `check succeeded and (parameters.amount <= 2000 or result.yes)`."""
    if isinstance(rule, rules.All | rules.AnyOf):
        word = " and " if isinstance(rule, rules.All) else " or "
        text = word.join(shown_rule(part, inside=True) for part in rules.parts(rule))
        return f"({text})" if inside and len(rules.parts(rule)) > 1 else text
    if isinstance(rule, rules.NoneOf):
        return f"not ({' or '.join(shown_rule(part) for part in rules.parts(rule))})"
    if isinstance(rule, rules.Success):
        return f"{rule.success} succeeded"
    if isinstance(rule, rules.Failed):
        return f"{rule.failed} failed"
    if isinstance(rule, rules.Skipped):
        return f"{rule.skipped} was skipped"
    if isinstance(rule, rules.ContextComparison):
        return f"{rule.context} {rule.op}" + ("" if rule.op.endswith("exists") else f" {rule.value!r}")
    return _without_brackets(str(rule).strip().removeprefix("{{").removesuffix("}}").strip())


def _without_brackets(text: str) -> str:
    """Return an expression without the brackets around the whole of it, which the recorder of workflow functions writes."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and place < len(text) - 1:
            return text
    return text[1:-1]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CONDITION else text[: MAX_CONDITION - 1] + "…"
