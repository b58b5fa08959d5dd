"""The reason why a task was skipped: its sentences, and that random runs leave none without a reason."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.serialization import dump_task_state
from penstock.language.moves import SKIPPED
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.skip_reason import BY_HAND, skip_reason
from penstock.store.workflows.workflow_runs import skipped_task
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.graphs import sound, workflows
from tests.penstock.engine.test_against_reference import PARAMETERS, run_to_the_end
from tests.penstock.engine.written import run


def reasons(world: World) -> dict[str, str | None]:
    """Return the reasons of the skipped tasks that have no execution, by name, from the records as they are stored."""
    graph = world.plan.graph
    statuses = {index: state.status for index, state in world.tasks.items()}
    started = {name for name, _ in world.started}
    return {
        graph[index].name: skip_reason(
            graph, graph[index], skipped_task(orjson.loads(dump_task_state(state))), statuses
        )
        for index, state in world.tasks.items()
        if state.status == SKIPPED and graph[index].name not in started
    }


RULES: list[tuple[str, tuple[str, str], str]] = [
    ("input: {}", ("failed", "completed"), "a did not succeed"),
    ("input: {}", ("failed", "skipped"), "a did not succeed; b was skipped"),
    ("input: {}", ("timeout", "failed"), "a and b did not succeed"),
    (
        "when: '{{ parameters.n > 1 }}'",
        ("completed", "completed"),
        "its condition is false: parameters.n > 1",
    ),
    ("when: {context: n, op: '>', value: 1}", ("completed", "completed"), "its condition is false: n > 1"),
    (
        "when: '{{ parameters.n > 0 }}'",
        ("completed", "skipped"),
        "b was skipped. The condition of c has no rule about outcomes, so each task before it must succeed",
    ),
    ("when: one_failed", ("completed", "completed"), "its condition is false: one_failed"),
    (
        "when: {all: [{success: a}, {any: ['{{ parameters.n > 2 }}', {failed: b}]}]}",
        ("completed", "completed"),
        "its condition is false: a succeeded and (parameters.n > 2 or b failed)",
    ),
    (
        "when: {none: [{skipped: a}, {failed: b}]}",
        ("skipped", "completed"),
        "its condition is false: not (a was skipped or b failed)",
    ),
    ("join: 2", ("skipped", "completed"), "only 1 of the tasks before it succeeded, and it needs 2"),
    ("join: any", ("failed", "skipped"), "none of the tasks before it succeeded, and it needs 1"),
]


@pytest.mark.parametrize(("rule", "ends", "reason"), RULES)
def test_reason_names_the_rule_that_decided(rule: str, ends: tuple[str, str], reason: str) -> None:
    world = run(
        f"""
        a: {{action: t.a, allow_failure: false}}
        b: {{action: t.b}}
        c: {{action: t.c, needs: [a, b], {rule}}}
        """,
        n=1,
    )
    world.finish(("a", ends[0], None), ("b", ends[1], None))
    assert reasons(world)["c"] == reason


def test_task_is_skipped_before_all_tasks_before_it_have_ended() -> None:
    world = run(
        """
        a: {action: t.a}
        b: {action: t.b}
        c: {action: t.c, needs: [a, b], join: any, when: '{{ parameters.n > 2 }}'}
        """,
        n=1,
    )
    world.finish(("a", 1))
    assert reasons(world) == {"c": "its condition is false: parameters.n > 2"}


def test_transition_that_was_not_taken_is_named() -> None:
    world = run(
        """
        a: {action: t.a, next: [{when: failed, do: b}]}
        b: {action: t.b}
        """.replace("when: failed", "when: '{{ failed() }}'")
    )
    world.finish(("a", 1))
    assert reasons(world) == {"b": "a did not choose this task (`next`)"}


def test_first_task_is_skipped_by_its_own_condition() -> None:
    world = run("a: {action: t.a, when: '{{ parameters.n > 1 }}'}", n=1)
    assert reasons(world) == {"a": "its condition is false: parameters.n > 1"}


def test_skip_by_hand_is_an_operators() -> None:
    world = run(
        """
        a: {action: t.a}
        b: {action: t.b, needs: a}
        """
    )
    world.skip("b")
    assert reasons(world) == {"b": BY_HAND}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(workflows().filter(sound), st.data())
def test_every_skip_of_a_random_run_has_a_reason(workflow: Workflow, data: st.DataObject) -> None:
    world: Any = World(workflow, PARAMETERS).begin()
    run_to_the_end(data, world)
    assert {name for name, reason in reasons(world).items() if not reason} == set()
