"""The parameters of an execution when its task starts."""

from __future__ import annotations

import pytest

from penstock.engine.decision import Start
from penstock.engine.state import TaskState
from penstock.errors import ExpressionError
from penstock.language.rules.event_filter import bind_filter, matches
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import run


def started(world: World, task: str, item: int | None = None) -> Start:
    return world.started[task, item]


def test_input_delay_and_route_are_rendered_for_each_item() -> None:
    world = run(
        """
        a:
          action: t.a
          with_items: [1, 2]
          input: {n: "{{ item * 10 }}"}
          delay: "{{ item }}"
          route: "r{{ index }}"
        b: {action: t.b, delay: 1m30s, route: gpu, input: "{{ parameters }}"}
        """,
        p=1,
    )
    assert [(s.body, s.delay, s.route) for s in (started(world, "a", 0), started(world, "a", 1))] == [
        ({"n": 10}, 1.0, "r0"),
        ({"n": 20}, 2.0, "r1"),
    ]
    whole = started(world, "b")
    assert (whole.body, whole.delay, whole.route, whole.step.kind) == ({"p": 1}, 90.0, "gpu", "action")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("delay: '{{ parameters.p }}'", "task `a`, delay: is not a duration: 'x'"),
        ("route: '{{ parameters.n }}'", "task `a`, route: its value has the type int, and must be text"),
        ("input: '{{ parameters.n }}'", "task `a`, input: its value has the type int, and must be a mapping"),
        (
            "input: {a: {b: '{{ parameters.q }}'}}",
            "task `a`, input: `a.b` = `{{ parameters.q }}`: there is no field `q`",
        ),
    ],
)
def test_an_unrenderable_option_fails_the_task_by_name(option: str, said: str) -> None:
    world = run(f"a: {{action: t.a, {option}}}", p="x", n=1)
    assert world.statuses["a"] == "failed"
    assert not world.started
    assert world.final is not None
    assert said in str(world.final.error)


def test_an_inquiry_is_asked_with_its_texts_rendered_and_its_answer_is_the_result() -> None:
    world = run(
        """
        ask: {inquiry: {prompt: "Ship {{ parameters.n }}?", assignee: "{{ parameters.who }}", default: "{{ 1 + 1 }}"}}
        ship: {action: t.s, needs: ask, input: {n: "{{ tasks.ask.result }}"}}
        """,
        n=3,
        who="ops",
    )
    assert started(world, "ask").body == {"prompt": "Ship 3?", "assignee": "ops", "default": 2}
    assert started(world, "ask").step.kind == "inquiry"
    assert world.finish(("ask", 5)).input("ship") == {"n": 5}


def test_an_event_is_waited_for_with_the_values_of_now() -> None:
    filter = "event.payload.id == parameters.id and event.payload.n > vars.n and tasks.a.result.ok"
    world = run(
        f"""
        a: {{action: t.a}}
        w: {{needs: a, wait_for_event: {{trigger: t.paid, filter: {filter}, timeout: 60}}}}
        any: {{wait_for_event: {{trigger: t.paid}}}}
        """,
        "vars: {n: 1, unused: 2}",
        id=7,
        unused=8,
    )
    world.finish(("a", {"ok": True}))
    start = started(world, "w")
    assert start.body["bound"] == {
        "parameters": {"id": 7},
        "vars": {"n": 1},
        "tasks": {"a": {"status": "completed", "result": {"ok": True}, "error": None}},
    }
    assert matches(start.body["filter"], start.body["bound"], {"payload": {"id": 7, "n": 2}})
    assert not matches(start.body["filter"], start.body["bound"], {"payload": {"id": 7, "n": 1}})
    with pytest.raises(ExpressionError, match="no field `n`"):
        matches(start.body["filter"], start.body["bound"], {"payload": {"id": 7}})
    assert started(world, "any").body == {"filter": None, "bound": {}}
    assert matches(None, {}, {})


def test_a_sub_workflow_is_started_with_its_input() -> None:
    world = run("s: {workflow: t.other, input: {n: 1}, with_items: [1, 2], limits: {max: 1}}")
    assert [start.step.kind for start in world.started.values()] == ["workflow", "workflow"]


def test_of_tasks_that_have_not_begun_nothing_is_kept() -> None:
    world = run("a: {action: t.a}\nb: {action: t.b, needs: a}\nc: {action: t.c, needs: b}")
    assert set(world.tasks) == {0}
    world.finish(("a", 1))
    assert {task for task, record in world.tasks.items() if record != TaskState()} == {0, 1}


@pytest.mark.parametrize(
    ("given", "said"), [("", "the workflow says so"), (", input: {message: no stock}", "no stock")]
)
def test_a_task_that_fails_says_why(given: str, said: str) -> None:
    world = run(f"a: {{action: fail{given}}}")
    assert world.tasks[0].error == {"type": "Failed", "message": said}


def test_an_event_is_matched_by_the_equality_of_its_filter() -> None:
    names = {"parameters": {"id": 7, "other": 8}, "vars": {"n": 1}}
    bound = bind_filter("event.payload.id == parameters.id", names)
    assert (bound["path"], bound["key"]) == (["payload", "id"], "n7")
    assert bound["bound"] == {"parameters": {"id": 7}}
    assert set(bind_filter("event.payload.n > vars.n", names)) == {"filter", "bound"}
    assert set(bind_filter("event.payload.id == parameters", names)) == {"filter", "bound"}, (
        "that is neither a text nor a number"
    )
    assert bind_filter("vars in event.payload.all", names)["bound"] == {"vars": {"n": 1}}
    assert bind_filter("parameters.missing is not defined", names)["bound"] == {"parameters": {}}
    assert bind_filter("item.n == event.n", {"item": 3})["bound"] == {"item": 3}
