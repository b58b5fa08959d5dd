"""Trigger rules in Cloacina's JSON: each is read as the rule of ours, and decides as it would there."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.language.expressions import rule_comparisons
from penstock.language.terms.options import Wrong
from penstock.language.workflows.cloacina_trigger_rules import GROUPS, OPERATORS, OUTCOMES, translated
from penstock.language.workflows.serialization import from_yaml, to_yaml
from penstock.language.workflows.task import Task
from penstock.language.workflows.task_trigger_rules import ContextComparison, SourceOutcomes, holds
from penstock.testing.memory_workflow import MemoryWorkflow

TASKS = ("a", "b", "c")


def test_operator_and_outcome_have_their_equal() -> None:
    for theirs, ours in OPERATORS.items():
        read = translated({"type": "ContextValue", "key": "n", "operator": theirs, "value": 5})
        without = theirs in ("Exists", "NotExists")
        assert read == {"context": "n", "op": ours, **({} if without else {"value": 5})}
    for theirs, ours in OUTCOMES.items():
        assert (
            translated({"type": theirs, "task_name": "a"})
            == {ours: "a"}
            == translated({"type": theirs, "value": "a"})
        )
    assert translated({"type": "Always"}) == "always"


@pytest.mark.parametrize(
    ("rule", "message", "hint"),
    [
        ({"type": "Al"}, "is not a type", "'All'"),
        ({"type": "All"}, "has no conditions", "at least one"),
        ({"type": "All", "conditions": []}, "has no conditions", "at least one"),
        ({"type": "All", "condition": []}, "has 'condition'", "'conditions'"),
        ({"type": "TaskSuccess"}, "names no task", "task_name"),
        ({"type": "TaskSuccess", "task_name": "a", "value": "b"}, "names two tasks", "task_name"),
        (
            {"type": "ContextValue", "key": "n", "operator": "Equal", "value": 1},
            "is not an operator",
            "'Equals'",
        ),
        ({"type": "ContextValue", "key": "n", "operator": "Equals"}, "no value to compare", "value"),
        ({"type": "ContextValue", "operator": "Equals", "value": 1}, "has no key", "name of a value"),
    ],
)
def test_wrong_rule_is_refused_with_its_remedy(rule: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(Wrong, match=message) as refusal:
        translated(rule)
    assert hint in str(refusal.value.hint)
    assert "docs/coming-from/cloacina.md" in str(refusal.value.hint)
    with pytest.raises(DefinitionError, match=message):
        from_yaml(_workflow_with(rule))


def _workflow_with(rule: Any) -> str:
    return json.dumps(
        {
            "workflow": "a.b",
            "tasks": {"a": {"action": "noop"}, "t": {"action": "noop", "needs": ["a"], "when": rule}},
        }
    )


def test_yaml_takes_it_and_stores_ours() -> None:
    theirs = {"type": "Any", "conditions": [{"type": "TaskFailed", "task_name": "a"}, {"any": ["all_done"]}]}
    flow = from_yaml(_workflow_with(theirs))
    assert "any:" in to_yaml(flow)
    assert flow.digest == from_yaml(_workflow_with({"any": [{"failed": "a"}, {"any": ["all_done"]}]})).digest


def _theirs(rule: Mapping[str, Any], statuses: Mapping[str, str], context: Mapping[str, Any]) -> bool:
    """Evaluate a rule as Cloacina's own state manager does."""
    kind = rule["type"]
    if kind == "Always":
        return True
    if kind in GROUPS:
        verdicts = [_theirs(condition, statuses, context) for condition in rule["conditions"]]
        return {"All": all(verdicts), "Any": any(verdicts), "None": not any(verdicts)}[kind]
    if kind in OUTCOMES:
        return statuses[rule["task_name"]] == {"TaskSuccess": "Completed", "TaskFailed": "Failed"}.get(
            kind, "Skipped"
        )
    there = rule["key"] in context
    value: Any = context.get(rule["key"])
    match rule["operator"]:
        case "Equals":
            return there and value == rule["value"]
        case "NotEquals":
            return not there or value != rule["value"]
        case "GreaterThan":
            return there and value > rule["value"]
        case "LessThan":
            return there and value < rule["value"]
        case "Contains":
            return there and rule["value"] in value
        case "NotContains":
            return not there or rule["value"] not in value
        case "Exists":
            return there
    return not there


def _random_rule(rng: random.Random, depth: int) -> dict[str, Any]:
    kind = rng.choice(
        [*GROUPS, *OUTCOMES, "ContextValue", "Always"] if depth else [*OUTCOMES, "ContextValue"]
    )
    if kind in GROUPS:
        return {"type": kind, "conditions": [_random_rule(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    if kind in OUTCOMES:
        return {"type": kind, "task_name": rng.choice(TASKS)}
    if kind == "Always":
        return {"type": kind}
    operator = rng.choice(list(OPERATORS))
    key, value = (
        rng.choice(["words", "none"]) if "Contains" in operator else rng.choice(["n", "none"]),
        rng.choice([1, 5, 9]),
    )
    return {
        "type": "ContextValue",
        "key": key,
        "operator": operator,
        "value": "a" if "Contains" in operator else value,
    }


def test_random_rules_decide_as_in_cloacina() -> None:
    rng = random.Random(7)
    context = {"n": 5, "words": ["a", "b"]}
    ours_of = {"Completed": "success", "Failed": "failed", "Skipped": "skipped"}
    verdicts = []
    for _ in range(3_000):
        rule = _random_rule(rng, 3)
        statuses = {name: rng.choice(list(ours_of)) for name in TASKS}
        task = Task.model_validate({"name": "t", "action": "noop", "when": rule})
        outcomes = SourceOutcomes(3, named={name: ours_of[status] for name, status in statuses.items()})
        for status in statuses.values():
            setattr(outcomes, ours_of[status], getattr(outcomes, ours_of[status]) + 1)

        verdict = holds(task.when, outcomes, lambda part: _compared(part, context))
        assert verdict == _theirs(rule, statuses, context), (rule, statuses)
        verdicts.append(verdict)
    assert 500 < sum(map(bool, verdicts)) < 2_500


def _compared(part: Any, context: Mapping[str, Any]) -> bool:
    assert isinstance(part, ContextComparison)
    return rule_comparisons.holds(part.op, rule_comparisons.look_up(part.context, context), part.value)


def test_run_of_a_workflow_follows_the_rules() -> None:
    rules = {
        "ran": {"type": "All", "conditions": [{"type": "TaskFailed", "task_name": "bad"}]},
        "passed": {"type": "None", "conditions": [{"type": "TaskFailed", "task_name": "bad"}]},
    }
    tasks = {"bad": {"action": "x.y"}} | {
        name: {"action": "noop", "needs": ["bad"], "when": rule} for name, rule in rules.items()
    }
    world = MemoryWorkflow(from_yaml(json.dumps({"workflow": "a.b", "tasks": tasks})), {}).begin()
    world.finish(("bad", "failed", {"type": "ValueError", "message": "x"}))
    assert world.final is not None
    assert {name: world.statuses[name] for name in rules} == {"ran": "completed", "passed": "skipped"}
