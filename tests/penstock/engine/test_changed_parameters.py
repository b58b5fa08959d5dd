"""A re-run with other parameters keeps no task whose input would be another one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.engine.changed_parameters import ParameterRead, changed_paths, kept_reads
from penstock.engine.rerun import from_failed, from_task, skipped_again
from penstock.engine.state import KeptTask
from penstock.language.moves import COMPLETED
from penstock.language.workflows.model import Workflow
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.graphs import sound, workflows
from tests.penstock.engine.test_against_reference import RANDOM
from tests.penstock.engine.written import run

READS = (
    *["parameters.p"] * 3,
    *(
        "parameters.qq",
        "context.qq",
        "parameters['qq']",
        "parameters.cc.a",
        "parameters.cc.b",
        "context.cc.a",
    ),
    *("(parameters | length)", "parameters['q' ~ 'q']", "parameters.get('qq')"),
)
CONTEXTS = ("p", "qq", "cc.a", "cc.b", "x")
OLD = {"p": 1, "qq": 2, "cc": {"a": 1, "b": 2}}
CHANGES = st.sampled_from([("qq",), ("cc", "a"), ("cc",), ("p",), ()])
WHOLE = re.compile(r"\(parameters|parameters\[|parameters\.get|\{\{ context \}\}|\"context\": ?\"x\"")
"""The texts of templates that may read any parameter."""


@st.composite
def other_reads(draw: st.DrawFn) -> Workflow:
    """Return a random workflow in which each read of the parameter `p` is a read of some parameter."""

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"parameters\.p\b", lambda _: draw(st.sampled_from(READS)), value)
        if isinstance(value, dict):
            context = {"context": draw(st.sampled_from(CONTEXTS))} if "op" in value else {}
            return {key: replaced(inner) for key, inner in value.items()} | context
        return [replaced(inner) for inner in value] if isinstance(value, list) else value

    body = replaced(draw(workflows(early=False)).body())
    return Workflow.model_validate(body)


def ends(seed: int) -> Callable[[str, int | None, Any], tuple[str, Any]]:
    """Return a function from a task and its input to its end, so that equal inputs have equal ends."""

    def end(task: str, item: int | None, body: Any) -> tuple[str, Any]:
        digest = sha256(orjson.dumps([seed, task, item, body], option=orjson.OPT_SORT_KEYS)).digest()
        return ("failed" if digest[0] % 3 == 0 else COMPLETED), digest[1] % 4

    return end


def play(world: World, seed: int) -> World:
    end = ends(seed)
    world.begin()
    while world.open:
        key = world.open[0]
        world.finish((key, *end(*key, world.started[key].body)))
    return world


def completed_items(world: World) -> dict[int, bytes]:
    """Return a bitmap of completed items for each fan-out that did not complete."""
    bits = {}
    for task, state in world.tasks.items():
        if state.fan is not None and state.status != COMPLETED:
            name = world.plan.graph[task].name
            done = [item for (t, item), (s, *_) in world.ended.items() if t == name and s == COMPLETED]
            bits[task] = sum(1 << int(item or 0) for item in done).to_bytes(
                (state.fan.total + 7) // 8, "little"
            )
    return bits


def with_change(path: tuple[str, ...]) -> dict[str, Any]:
    new: dict[str, Any] = {**OLD, "cc": dict(OLD["cc"])}  # type: ignore[call-overload]
    if path == ("cc", "a"):
        new["cc"]["a"] = 3
    elif path == ("cc",):
        new["cc"] = 3
    elif path:
        new[path[0]] = 3
    return new


@RANDOM
@given(other_reads(), CHANGES, st.integers(0, 50), st.data())
def test_kept_input_equals_that_of_a_whole_rerun(
    workflow: Workflow, change: tuple[str, ...], seed: int, data: st.DataObject
) -> None:
    assume(sound(workflow))
    old = play(World(workflow, OLD), seed)
    new = with_change(change)
    start = data.draw(st.sampled_from([None, *old.plan.graph.nodes]))
    kept = (
        from_failed(old.plan, old.tasks, completed_items(old))
        if start is None
        else from_task(old.plan, old.tasks, start.index)
    )
    changed = list(changed_paths(OLD, new))
    assert changed == ([change] if change else [])
    reads = kept_reads(old.plan, old.tasks, kept, changed)
    if reads:
        assert all(one.parameter == change for one in reads)
        return
    whole = play(World(workflow, new), seed)
    rerun = play(World(workflow, new, kept_tasks=kept, previous_run=old), seed)
    assert rerun.final is not None
    assert whole.final is not None
    assert (rerun.final.status, rerun.final.output) == (whole.final.status, whole.final.output)
    if not whole.tasks:  # the workflow's own variables are in error, so that no task began
        assert not rerun.started
        return
    for task, one in kept.items():
        name = old.plan.graph[task].name
        inputs = {key: start.body for key, start in old.started.items() if key[0] == name}
        if one.status is None:
            inputs = {key: body for key, body in inputs.items() if key not in rerun.started}
            assert all(whole.input(*key) == body for key, body in inputs.items())
        else:
            assert not [key for key in rerun.started if key[0] == name]
            assert {key: s.body for key, s in whole.started.items() if key[0] == name} == inputs
    for task in kept.keys() | skipped_again(old.plan, old.tasks, kept):
        assert rerun.tasks[task].status == whole.tasks[task].status
    assert rerun.statuses == whole.statuses


@RANDOM
@given(other_reads(), CHANGES, st.integers(0, 50))
def test_change_without_a_textual_read_is_allowed(
    workflow: Workflow, change: tuple[str, ...], seed: int
) -> None:
    """The texts of the kept tasks are searched for the name of the parameter."""
    assume(sound(workflow) and change)
    old = play(World(workflow, OLD), seed)
    kept = from_failed(old.plan, old.tasks, completed_items(old))
    bodies = {task["name"]: task for task in workflow.body()["tasks"]}
    same = kept.keys() | skipped_again(old.plan, old.tasks, kept)
    texts = [workflow.body().get("vars", {}), *(bodies[old.plan.graph[task].name] for task in same)]
    text = orjson.dumps(texts).decode()
    if WHOLE.search(text) or re.search(rf"\b{change[0]}\b", text):
        return
    assert kept_reads(old.plan, old.tasks, kept, [change]) == []


def read_by(tasks: str, more: str = "", **parameters: Any) -> list[ParameterRead]:
    """Return the reads of kept tasks if the last task `z` has failed and the parameter `n` changes."""
    world = run(tasks, more, **parameters)
    while world.open:
        key = world.open[0]
        world.finish((key, "failed" if key[0] == "z" else COMPLETED, None))
    kept: Mapping[int, KeptTask] = from_failed(world.plan, world.tasks, completed_items(world))
    return kept_reads(world.plan, world.tasks, kept, [("n",)])


Z = "\nz: {action: t.z, needs: a}"


@pytest.mark.parametrize(
    "task",
    [
        "input: {x: '{{ parameters.n }}'}",
        "input: {x: '{{ parameters.n.deep }}'}",
        "input: {x: {y: ['{{ parameters.n }}']}}",
        "input: '{{ parameters }}'",
        "input: {x: '{{ context.n }}'}",
        "input: {x: '{{ context }}'}",
        "input: {x: '{{ vars.v }}'}",
        "input: {x: '{{ context.v }}'}",
        "input: {x: '{{ vars }}'}",
        "with_items: '{{ [parameters.n] }}'",
        "when: '{{ parameters.n == 1 }}'",
        "when: {context: n, op: '==', value: 1}",
        "when: {context: v, op: '==', value: 1}",
        "when: {all: [all_success, {context: n.x, op: not exists}]}",
        "delay: '{{ parameters.n * 0 }}'",
        "publish: {y: '{{ parameters.n }}'}",
        "next: [{when: succeeded() and parameters.n == 1, publish: {y: 1}}]",
        "next: [{publish: {y: '{{ parameters.n }}'}}]",
    ],
)
def test_read_of_a_changed_parameter_is_found(task: str) -> None:
    text = f"s: {{action: t.s}}\na: {{action: t.a, needs: s, {task}}}" + Z
    parameter: Any = {"deep": 1} if "deep" in task else 1
    reads = read_by(text, "vars: {v: '{{ parameters.n }}', w: 1}", n=parameter)
    assert [(one.task, one.parameter) for one in reads] == [("a", ("n",))]
    assert (reads[0].variable == "v") == any(word in task for word in (" v,", ".v ", "{{ vars }}"))


@pytest.mark.parametrize(
    "task",
    [
        "input: {x: '{{ parameters.m }}'}",
        "input: {n: 1}",
        "input: {x: '{{ vars.w }}'}",
        "input: {x: '{{ [1, 2] | length }}'}",
        "when: {context: m.n, op: not exists}",
    ],
)
def test_task_that_reads_other_names_is_kept(task: str) -> None:
    text = f"s: {{action: t.s}}\na: {{action: t.a, needs: s, {task}}}" + Z
    assert read_by(text, "vars: {v: '{{ parameters.n }}', w: 1}", n=1, m=2) == []


def test_read_by_a_task_that_is_not_kept_is_allowed() -> None:
    assert (
        read_by("a: {action: t.a}\nz: {action: t.z, needs: a, input: {x: '{{ parameters.n }}'}}", n=1) == []
    )


def test_task_skipped_for_the_parameter_is_found() -> None:
    text = "s: {action: t.s}\na: {action: t.a, needs: s, when: '{{ parameters.n == 2 }}'}"
    text += "\nb: {action: t.b, needs: a, when: all_done}\nz: {action: t.z, needs: b}"
    assert [one.task for one in read_by(text, n=1)] == ["a"]


def test_items_that_read_the_parameter_are_found() -> None:
    world = run("z: {action: t.z, with_items: [1, 2], input: {x: '{{ parameters.n + item }}'}}", n=1)
    world.finish((("z", 0), 1), (("z", 1), "failed", None))
    kept = from_failed(world.plan, world.tasks, completed_items(world))
    assert [one.task for one in kept_reads(world.plan, world.tasks, kept, [("n",)])] == ["z"]


def test_items_of_a_changed_list_are_not_kept_and_allowed() -> None:
    world = run("z: {action: t.z, with_items: '{{ parameters.n }}', input: {x: '{{ item }}'}}", n=[1, 2])
    world.finish((("z", 0), 1), (("z", 1), "failed", None))
    kept = from_failed(world.plan, world.tasks, completed_items(world))
    assert kept_reads(world.plan, world.tasks, kept, [("n",)]) == []
    rerun = World(world.plan.workflow, {"n": [1, 3]}, kept_tasks=kept, previous_run=world).begin()
    assert [rerun.input("z", item) for item in (0, 1)] == [{"x": 1}, {"x": 3}]


def test_task_ended_by_an_operator_has_read_nothing() -> None:
    world = run(
        "s: {action: t.s}\na: {action: t.a, needs: s, input: {x: '{{ parameters.n }}'}}\nz: {action: t.z, needs: a}",
        n=1,
    )
    world.set_result("a", 7).finish(("s", 1)).finish(("z", "failed", None))
    kept = from_failed(world.plan, world.tasks, {})
    assert set(kept) == {0, 1}
    assert kept_reads(world.plan, world.tasks, kept, [("n",)]) == []


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("a",)]),
        ({"a": [1]}, {"a": [1.0]}, [("a",)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a", "c")]),
        ({"a": {"b": 1}}, {"a": {}}, [("a", "b")]),
        ({}, {"a": None}, [("a",)]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [("a",)]),
        ({"a": {"b": 1}}, {"a": 1}, [("a",)]),
    ],
)
def test_changed_paths_lead_to_the_differences(old: Any, new: Any, paths: list[tuple[str, ...]]) -> None:
    assert list(changed_paths(old, new)) == paths
