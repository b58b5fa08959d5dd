"""The handling of failures: which failures count as handled, and by which task."""

from __future__ import annotations

from tests.penstock.engine.written import names, run


def test_of_two_failures_the_run_names_only_the_unhandled_one() -> None:
    world = run(
        "a: {action: t.a, next: [{when: failed(), publish: {x: 1}}]}\nb: {action: t.b}\nc: {action: t.c}"
    )
    world.finish(("c", 1), ("a", "failed", {"type": "A"}), ("b", "failed", {"type": "B"}))
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.error["message"] == "b: B"
    assert set(world.final.error["tasks"]) == {"b"}


def test_a_task_that_runs_for_a_failure_handles_only_failures() -> None:
    world = run(
        """
        a: {action: t.a}
        b: {action: t.b}
        c: {action: t.c, allow_failure: true}
        h: {action: t.h, needs: [a, b, c], when: {any: [{failed: a}, {failed: b}, {failed: c}]}}
        """
    )
    world.finish(("c", 1)).finish(("b", 1)).finish(("a", "failed", None)).finish(("h", 1))
    assert world.final is not None
    assert world.final.status == "completed"
    handled = {name: world.tasks[world.plan.index(name)].handled for name in "abc"}
    assert handled == {"a": True, "b": False, "c": False}


def test_a_late_source_of_a_handler_is_handled_only_if_it_failed() -> None:
    text = """
        a: {action: t.a}
        b: {action: t.b}
        c: {action: t.c}
        h: {action: t.h, needs: [a, b, c], when: one_failed}
        """
    world = run(text).finish(("a", "failed", None))
    assert "h" in names(world)
    world.finish(("b", 1)).finish(("c", "failed", None)).finish(("h", 1))
    assert {name: world.tasks[world.plan.index(name)].handled for name in "abc"} == {
        "a": True,
        "b": False,
        "c": True,
    }
    assert world.final is not None
    assert world.final.status == "completed"
