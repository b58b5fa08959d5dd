"""The decision of a task, its time and its outcome; one rule of docs/workflows.md a test."""

from __future__ import annotations

import pytest

from penstock.language.moves import FINAL
from tests.penstock.engine.written import names, run

FAN_IN = """
    a: {action: t.a}
    b: {action: t.b}
    c: {action: t.c, needs: [a, b], %s}
"""


def test_tasks_without_sources_start_at_once_and_others_after_all_their_needs() -> None:
    world = run(FAN_IN % "input: {}")
    assert names(world) == ["a", "b"]
    assert names(world.finish(("a", 1))) == ["b"]
    assert names(world.finish(("b", 1))) == ["c"]
    world.finish(("c", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_a_skip_goes_on_to_everything_after_it() -> None:
    world = run(
        """
        a: {action: t.a}
        b: {action: t.b, needs: a}
        c: {action: t.c, needs: b}
        d: {action: t.d, needs: c, when: always}
        """
    )
    world.finish(("a", "failed", {"type": "X", "message": "no"}))
    assert world.statuses == {"a": "failed", "b": "skipped", "c": "skipped", "d": "open"}
    world.finish(("d", 1))
    assert world.final is not None
    assert world.final.status == "failed"
    assert world.final.error == {
        "type": "TaskFailed",
        "message": "a: X: no",
        "tasks": {"a": {"type": "X", "message": "no"}},
        "cause": {"path": "a", "type": "X", "message": "no"},
    }


@pytest.mark.parametrize(
    ("rule", "ends", "runs"),
    [
        ("when: all_success", ("completed", "completed"), True),
        ("when: all_success", ("completed", "skipped"), False),
        ("when: all_done", ("failed", "skipped"), True),
        ("when: always", ("skipped", "skipped"), True),
        ("when: one_success", ("failed", "completed"), True),
        ("when: one_success", ("failed", "skipped"), False),
        ("when: one_failed", ("skipped", "timeout"), True),
        ("when: one_failed", ("skipped", "completed"), False),
        ("when: none_failed", ("skipped", "completed"), True),
        ("when: none_failed", ("skipped", "abandoned"), False),
        ("when: {failed: b}", ("completed", "cancelled"), True),
        ("when: {failed: b}", ("failed", "completed"), False),
        ("when: {all: [{success: a}, {any: [{skipped: b}, {failed: b}]}]}", ("completed", "skipped"), True),
        ("when: {none: [{failed: a}, {failed: b}]}", ("completed", "skipped"), True),
        ("when: {none: [{failed: a}, {failed: b}]}", ("completed", "failed"), False),
        ("join: 1", ("skipped", "completed"), True),
        ("join: 2", ("skipped", "completed"), False),
    ],
)
def test_trigger_rules(rule: str, ends: tuple[str, str], runs: bool) -> None:
    world = run(FAN_IN % rule)
    world.finish(("a", ends[0], None), ("b", ends[1], None))
    assert world.statuses["c"] == ("open" if runs else "skipped")


@pytest.mark.parametrize(
    ("op", "value", "holds"),
    [
        ("==", "3", True), ("!=", "3", False), (">", "2", True), (">=", "3", True), ("<", "3", False),
        ("<=", "3", True), ("in", "[1, 3]", True), ("not in", "[1, 3]", False),
    ],
)  # fmt: skip
def test_context_comparisons(op: str, value: str, holds: bool) -> None:
    world = run(
        f"a: {{action: t.a}}\nb: {{action: t.b, needs: a, when: {{context: p.n, op: {op!r}, value: {value}}}}}",
        p={"n": 3},
    )
    assert world.finish(("a", 1)).statuses["b"] == ("open" if holds else "skipped")


def test_a_context_path_that_leads_nowhere_only_satisfies_negations() -> None:
    for op, more, status in (
        ("==", ", value: 1", "skipped"),
        ("!=", ", value: 1", "open"),
        ("not exists", "", "open"),
    ):
        world = run(f"a: {{action: t.a, when: {{context: nowhere.at.all, op: '{op}'{more}}}}}")
        assert world.statuses["a"] == status


def test_a_comparison_that_makes_no_sense_fails_the_task_and_says_why() -> None:
    world = run("a: {action: t.a, when: {context: p, op: '>', value: 1}}", p="text")
    assert world.statuses["a"] == "failed"
    assert world.final is not None
    assert world.final.error is not None
    assert "task `a`, when: `>` does not compare a str and a int" in world.final.error["message"]


def test_an_expression_alone_is_only_asked_after_success() -> None:
    tasks = "a: {action: t.a}\nb: {action: t.b, needs: a, when: '{{ parameters.p > 1 }}'}"
    assert run(tasks, p=2).finish(("a", 1)).statuses["b"] == "open"
    assert run(tasks, p=1).finish(("a", 1)).statuses["b"] == "skipped"
    assert run(tasks, p=2).finish(("a", "failed", None)).statuses["b"] == "skipped"


def test_join_any_starts_at_the_first_success_and_late_ones_change_nothing() -> None:
    world = run(FAN_IN % "join: any")
    assert names(world.finish(("a", 1))) == ["b", "c"]
    assert names(world.finish(("b", 2))) == ["c"]
    assert world.finish(("c", 3)).final is not None


def test_join_any_waits_for_all_before_it_gives_up() -> None:
    world = run(FAN_IN % "join: any")
    assert "c" not in {
        name for name, record in world.finish(("a", "failed", None)).statuses.items() if record in FINAL
    }
    assert world.finish(("b", "failed", None)).statuses["c"] == "skipped"


def test_one_failed_starts_at_the_first_failure_and_handles_later_ones_too() -> None:
    world = run(FAN_IN % "when: one_failed")
    assert names(world.finish(("a", "failed", None))) == ["b", "c"]
    world.finish(("b", "failed", None), ("c", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_only_the_rule_that_asks_for_a_failure_handles_it() -> None:
    for rule, status in (
        ("one_failed", "completed"),
        ("{failed: a}", "completed"),
        ("{any: [{success: b}, {failed: a}]}", "completed"),
        ("{none: [{none: [{failed: a}]}]}", "completed"),
        ("always", "failed"),
        ("{none: [{success: a}]}", "failed"),
        ("{any: [{success: b}, {none: [{failed: a}]}]}", "failed"),
        ("{success: b}", "failed"),
    ):
        world = run(FAN_IN % f"when: {rule}")
        world.finish(("a", "failed", None), ("b", 1), ("c", 1))
        assert world.final is not None
        assert world.final.status == status, rule


def test_a_handler_that_was_skipped_handles_nothing() -> None:
    world = run(FAN_IN % "when: {all: [{failed: a}, {failed: b}]}")
    world.finish(("a", "failed", None), ("b", 1))
    assert world.final is not None
    assert world.final.status == "failed"


def test_an_allowed_failure_is_a_success_for_those_after_it_and_says_so_to_expressions() -> None:
    world = run(
        """
        a: {action: t.a, allow_failure: true}
        b: {action: t.b, needs: a, input: {how: "{{ tasks.a.status }}", got: "{{ tasks.a.result }}"}}
        """
    )
    world.finish(("a", "failed", None))
    assert world.input("b") == {"how": "failed", "got": None}
    assert world.tasks[0].handled
    world.finish(("b", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_transitions_lead_on_by_their_conditions() -> None:
    tasks = """
        a:
          action: t.a
          next:
            - {when: result.n > 3, do: big, publish: {size: big}}
            - {when: succeeded() and result.n <= 3, do: small, publish: {size: small}}
            - {when: failed(), do: mend}
            - {when: true, do: last}
        big: {action: t.b, input: {size: "{{ vars.size }}"}}
        small: {action: t.b}
        mend: {action: t.b}
        last: {action: t.b}
    """
    world = run(tasks).finish(("a", {"n": 4}))
    assert names(world) == ["big", "last"]
    assert world.input("big") == {"size": "big"}
    assert names(run(tasks).finish(("a", {"n": 3}))) == ["small", "last"]
    world = run(tasks).finish(("a", "timeout", None))
    assert names(world) == ["mend", "last"]


def test_a_transition_in_error_is_not_taken_and_fails_the_workflow() -> None:
    world = run(
        "a: {action: t.a, next: [{when: result.no > 1, do: b}, {do: c}]}\nb: {action: t.b}\nc: {action: t.c}"
    )
    assert names(world.finish(("a", {}))) == ["c"]
    world.finish(("c", 1))
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.status == "failed"
    assert world.final.error["type"] == "TransitionFailed"
    assert "task `a`, next.0.when: `result.no > 1`: there is no field `no`" in world.final.error["message"]


def test_a_failure_route_handles_the_failure_and_a_route_that_is_always_taken_does_not() -> None:
    for when, status in (
        ("failed()", "completed"),
        ("not succeeded()", "completed"),
        ("failed() and error.type == 'X'", "completed"),
        ("status == 'failed'", "completed"),
        ("error.type == 'X'", "completed"),
        ("true", "failed"),
        ("result == none", "failed"),
    ):
        world = run(
            f"a: {{action: t.a, next: [{{when: {when!r}, do: b}}]}}\nb: {{action: t.b}}".replace(
                "'true'", "true"
            )
        )
        world.finish(("a", "failed", {"type": "X"}), ("b", 1))
        assert world.final is not None
        assert world.final.status == status, when


def test_a_failure_route_to_a_task_that_is_skipped_handles_nothing() -> None:
    tasks = """
        a: {action: t.a, next: [{when: failed(), do: c}]}
        b: {action: t.b, next: [{when: failed(), do: c}]}
        c: {action: t.c, join: all}
    """
    world = run(tasks).finish(("a", "failed", None), ("b", 1))
    assert world.final is not None
    assert world.final.status == "failed"
    world = run(tasks).finish(("a", "failed", None), ("b", "failed", None), ("c", 1))
    assert world.final is not None
    assert world.final.status == "completed"


def test_a_failure_route_that_only_publishes_handles_the_failure() -> None:
    world = run(
        "a: {action: t.a, next: [{when: failed(), publish: {seen: true}}]}", "output: '{{ vars.seen }}'"
    )
    world.finish(("a", "failed", None))
    assert world.final is not None
    assert (world.final.status, world.final.output) == ("completed", True)


def test_of_exclusive_branches_one_is_enough_and_of_parallel_ones_join_waits_for_all() -> None:
    tasks = """
        a: {action: t.a, next: [{when: result == 1, do: b}, {when: result == 2, do: c}]}
        b: {action: t.b, next: [{do: d}]}
        c: {action: t.c, next: [{do: d}]}
        d: {action: t.d}
    """
    world = run(tasks).finish(("a", 2))
    assert names(world) == ["c"]
    assert names(world.finish(("c", 1))) == ["d"]
    world = run(tasks.replace("d: {action: t.d}", "d: {action: t.d, join: all}")).finish(("a", 2), ("c", 1))
    assert world.statuses["d"] == "skipped"


def test_an_end_that_is_told_twice_changes_nothing() -> None:
    world = run(FAN_IN % "input: {}").finish(("a", 1), ("a", 1))
    before = (dict(world.statuses), list(world.variables), world.state)
    world.finish(("a", 1))
    assert (dict(world.statuses), list(world.variables), world.state) == before
    assert not world.decision.tasks


def test_noop_gives_its_input_back_and_fail_fails_without_any_execution() -> None:
    world = run(
        """
        a: {action: noop, input: {n: "{{ parameters.p }}"}, publish: {n: "{{ result.n + 1 }}"}}
        b: {action: fail, needs: a, input: {message: "n is {{ vars.n }}"}}
        """,
        p=3,
    )
    assert not world.started
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.error["message"] == "b: Failed: n is 4"
