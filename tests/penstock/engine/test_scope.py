"""The values that tasks publish, and those that they see."""

from __future__ import annotations

import itertools

import pytest

from penstock.engine import WORKFLOW, VariablesRequest
from penstock.engine.task_errors import describe_error
from penstock.errors import InvalidInput
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

DIAMOND = """
    root: {action: t.a, publish: {x: root}}
    a: {action: t.a, needs: root, publish: {x: "{{ result }}", a: 1}}
    b: {action: t.a, needs: root, publish: {b: 1}}
    c: {action: t.a, needs: root, publish: {x: "{{ result }}"}}
    end: {action: t.a, needs: [c, b, a], input: {seen: "{{ vars }}"}}
"""


def test_the_later_task_in_the_declared_order_wins() -> None:
    for order in itertools.permutations("abc"):
        world = run(DIAMOND, "vars: {x: first, other: 1}").finish(("root", 1))
        for name in order:
            world.finish((name, name))
        assert world.input("end") == {"seen": {"x": "c", "a": 1, "b": 1, "other": 1}}
        world = run(DIAMOND, "vars: {x: first, other: 1}").finish(("root", 1))
        world.finish(*((name, name) for name in order))
        assert world.input("end") == {"seen": {"x": "c", "a": 1, "b": 1, "other": 1}}


def test_a_branch_that_publishes_nothing_hides_no_other_value() -> None:
    world = run(DIAMOND, "vars: {x: first}").finish(("root", 1), ("c", "skipped", None), ("b", 1), ("a", "A"))
    assert world.statuses["end"] == "skipped"
    world = run(DIAMOND.replace("needs: [c, b, a],", "needs: [c, b, a], when: always,"), "vars: {x: first}")
    world.finish(("root", 1), ("c", "skipped", None), ("b", 1), ("a", "A"))
    assert world.input("end") == {"seen": {"x": "A", "a": 1, "b": 1}}


def test_a_task_does_not_see_values_of_a_parallel_task() -> None:
    world = run(
        """
        a: {action: t.a, publish: {x: 2}}
        b: {action: t.b}
        c: {action: t.c, needs: b, input: {x: "{{ vars.x }}"}}
        """,
        "vars: {x: 1}",
    )
    assert world.finish(("a", 1)).finish(("b", 1)).input("c") == {"x": 1}
    world = World(world.plan.workflow).begin()
    assert world.finish(("a", 1), ("b", 1)).input("c") == {"x": 1}


def test_the_parameters_are_never_lost_and_the_context_shows_variables_over_them() -> None:
    world = run(
        """
        a: {action: t.a, publish: {x: 2}}
        b: {action: t.b, needs: a, when: always, input: {c: "{{ context }}", p: "{{ parameters.x }}"}}
        """,
        x=1,
        y=5,
    )
    assert world.finish(("a", 1)).input("b") == {"c": {"x": 2, "y": 5}, "p": 1}
    world = run(
        "a: {action: t.a}\nb: {action: t.b, needs: a, when: always, input: {c: '{{ context }}'}}", x=1
    )
    assert world.finish(("a", "failed", None)).input("b") == {"c": {"x": 1}}


def test_a_counter_counts_along_a_chain_and_each_step_reads_one_value() -> None:
    steps = "".join(
        f"s{n}: {{action: t.s, needs: {[f's{n - 1}'] if n else []}, publish: {{n: '{{{{ vars.n + 1 }}}}'}}}}\n"
        for n in range(30)
    )
    world = run(steps, "vars: {n: 0}\noutput: '{{ vars.n }}'")
    for n in range(30):
        world.finish((f"s{n}", None))
    assert world.final is not None
    assert world.final.output == 30


def test_publish_may_be_one_expression_and_has_to_give_a_mapping() -> None:
    tasks = "a: {action: t.a, publish: '{{ result }}'}"
    world = run(tasks, "output: '{{ vars }}'").finish(("a", {"x": 1, "y": [2]}))
    assert world.final is not None
    assert world.final.output == {"x": 1, "y": [2]}
    world = run(tasks).finish(("a", 3))
    assert world.final is not None
    assert "task `a`, publish: its value has the type int, and must be a mapping" in str(world.final.error)


def test_a_task_whose_publish_is_in_error_has_failed_and_its_failure_can_be_handled() -> None:
    world = run(
        "a: {action: t.a, publish: {x: '{{ result.no }}'}, next: [{when: failed(), do: b}]}\nb: {action: t.b}"
    )
    assert names(world.finish(("a", {}))) == ["b"]
    assert not world.variables
    world.finish(("b", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_a_route_on_the_result_handles_no_failure_of_publish() -> None:
    """It would have been taken after a success with this result, too."""
    world = run(
        "a: {action: t.a, publish: {x: '{{ result.no }}'}, next: [{when: result == 1, do: b}]}\nb: {action: t.b}"
    )
    world.finish(("a", 1)).finish(("b", 1))
    assert world.final is not None
    assert world.final.status == "failed"


def test_only_used_values_are_loaded() -> None:
    world = run(
        """
        a: {action: t.a, publish: {n: "{{ result.n }}"}}
        b: {action: t.b}
        c: {action: t.c, needs: [a, b], input: {n: "{{ vars.n }}"}}
        d: {action: t.d, needs: c, input: {b: "{{ tasks.b.result }}"}}
        """
    )
    world.rounds.clear()
    world.finish(("a", {"n": 1}), ("b", "large"))
    a, b, c, _ = range(4)
    assert [needed.results for needed in world.rounds] == [set(), {a}]
    assert [set(needed.variables) for needed in world.rounds] == [set(), {c}]
    world.rounds.clear()
    world.finish(("c", 1))
    assert {task for needed in world.rounds for task in needed.results} == {b}
    assert not any(needed.parameters for needed in world.rounds)


def test_an_output_in_error_fails_the_workflow() -> None:
    world = run("a: {action: t.a}", "output: '{{ tasks.a.result.no }}'").finish(("a", {}))
    assert world.final is not None
    assert world.final.status == "failed"
    assert "output: `{{ tasks.a.result.no }}`: there is no field `no`" in str(world.final.error)


def test_variables_to_begin_with_that_are_in_error_fail_the_workflow() -> None:
    world = run("a: {action: t.a}", "vars: {x: '{{ parameters.no }}'}")
    assert not world.started
    assert world.final is not None
    assert world.final.status == "failed"


def test_parameters_that_were_not_given_have_their_defaults() -> None:
    world = run(
        "a: {action: t.a, input: {n: '{{ parameters.n }}', m: '{{ context.m }}'}}",
        "parameters: {n: {type: integer, default: 3}, m: {type: integer, default: 4}}",
        m=5,
    )
    assert world.input("a") == {"n": 3, "m": 5}


def test_a_published_value_has_to_be_a_mapping() -> None:
    world = run("a: {action: t.a, next: [{publish: '{{ 5 }}', do: b}]}\nb: {action: t.b}").finish(("a", 1))
    assert world.final is not None
    assert "task `a`, next.0.publish: its value has the type int, and must be a mapping" in str(
        world.final.error
    )


@pytest.mark.parametrize(
    ("request_", "sees"),
    [
        (
            VariablesRequest(None, None, 2),
            {(WORKFLOW, "x"), (0, "x"), (1, "x"), (WORKFLOW, "y"), (0, "y"), (1, "y")},
        ),
        (VariablesRequest(frozenset("x"), None, 2), {(WORKFLOW, "x"), (0, "x"), (1, "x")}),
        (VariablesRequest(frozenset("x"), (1, 2), 9), {(WORKFLOW, "x"), (1, "x"), (2, "x")}),
        (VariablesRequest(frozenset(), (1,), 9), set()),
    ],
)
def test_a_request_says_whose_variables_it_is_for(
    request_: VariablesRequest, sees: set[tuple[int, str]]
) -> None:
    tried = {(writer, name) for writer in (WORKFLOW, 0, 1, 2, 3) for name in "xy"}
    assert {(writer, name) for writer, name in tried if request_.sees(writer, name)} == sees


def test_a_task_that_has_not_begun_is_said_to_be_waiting() -> None:
    world = run(
        """
        a: {action: t.a}
        c: {action: t.c}
        b: {action: t.b, needs: c}
        f: {action: t.f, needs: [a, b], when: one_success, input: {b: "{{ tasks.b.status }}"}}
        """
    ).finish(("a", 1))
    assert world.input("f") == {"b": "waiting"}


def test_an_error_that_the_engine_finds_has_a_type_a_message_and_a_hint_if_there_is_one() -> None:
    assert describe_error(InvalidInput("no", hint="Do.")) == {
        "type": "InvalidInput",
        "message": "no",
        "hint": "Do.",
    }
    assert describe_error(InvalidInput("no")) == {"type": "InvalidInput", "message": "no"}
