"""Random workflows, ended in random ways, orders and batches: the engine against a plain second opinion."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.language.workflows.model import Workflow
from penstock.language.workflows.serialization import from_body, from_yaml, to_yaml
from penstock.testing.memory_workflow import Key
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.graphs import ENDS, VALUES, sound, workflows
from tests.penstock.engine.reference import Reference

RANDOM = settings(
    max_examples=75,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
PARAMETERS = {"p": 2}
End = tuple[Key, str, Any]


def seen(world: World) -> dict[str, Any]:
    names = [node.name for node in world.plan.graph.nodes]
    records = {world.plan.graph[task].name: task_state for task, task_state in world.tasks.items()}
    return {
        "inputs": {key: start.body for key, start in world.started.items()},
        "ended": {name: task_state.status for name, task_state in records.items() if task_state.final},
        "variables": sorted(
            ("" if writer < 0 else names[writer], name, repr(value))
            for writer, name, value in world.variables
        ),
        "unhandled": (world.state.unhandled, len(world.state.faults)),
        "final": None if world.final is None else (world.final.status, world.final.output),
    }


def expected(reference: Reference) -> dict[str, Any]:
    return {
        "inputs": reference.inputs,
        "ended": reference.status,
        "variables": sorted((writer or "", name, repr(value)) for writer, name, value in reference.variables),
        "unhandled": (len(reference.unhandled()), reference.faults),
        "final": reference.final,
    }


def run_to_the_end(data: st.DataObject, world: World, reference: Reference | None = None) -> list[End]:
    """End what is open, so many at a time, some of it twice, until nothing is open any more; and compare
    after each."""
    log: list[End] = []
    while world.open:
        batch: list[End] = []
        for key in data.draw(st.permutations(world.open))[: data.draw(st.integers(1, 4))]:
            status = data.draw(ENDS)
            value = data.draw(VALUES) if status == "completed" else {"code": data.draw(VALUES)}
            batch.append((key, status, value if status in ("completed", "failed") else None))
        twice = data.draw(st.booleans())
        world.finish(*batch, *(batch + log if twice else []))
        log += batch
        if reference is not None:
            for key, status, value in batch:
                reference.end(*key, status, value)
            assert seen(world) == expected(reference)
    return log


@RANDOM
@given(workflows(fail_fast=None).filter(sound), st.data())
def test_the_engine_agrees_with_the_reference(workflow: Workflow, data: st.DataObject) -> None:
    world = World(workflow, PARAMETERS).begin()
    reference = Reference(workflow.body(), PARAMETERS)
    reference.begin()
    assert seen(world) == expected(reference)
    run_to_the_end(data, world, reference)
    assert world.final is not None


@RANDOM
@given(workflows(early=False).filter(sound), st.data())
def test_nothing_depends_on_order_batches_budget_or_pauses(workflow: Workflow, data: st.DataObject) -> None:
    first = World(workflow, PARAMETERS).begin()
    ends = {key: (status, value) for key, status, value in run_to_the_end(data, first)}
    again = World(workflow, PARAMETERS, budget=data.draw(st.integers(1, 3))).begin()
    while again.final is None:
        paused = data.draw(st.booleans()) and again.pause()
        batch = data.draw(st.permutations(again.open))[: data.draw(st.integers(1, 5))]
        # Which items of a fan-out began before it stopped may well depend on their order.
        assume(all(key in ends for key in batch))
        again.finish(*((key, *ends[key]) for key in batch))
        if paused:
            again.resume()
    assert again.final is not None
    stops = any(task.item_failures.then != "finish" for task in workflow.tasks)
    assume(not stops)
    assert seen(again) == seen(first)


@RANDOM
@given(workflows(fail_fast=None).filter(sound), st.data())
def test_a_stopped_workflow_ends_when_its_open_tasks_have_ended(
    workflow: Workflow, data: st.DataObject
) -> None:
    world = World(workflow, PARAMETERS, budget=data.draw(st.integers(1, 9))).begin()
    for _ in range(data.draw(st.integers(0, 3))):
        if world.open:
            world.finish((data.draw(st.sampled_from(world.open)), data.draw(ENDS), None))
    if world.final is None:
        if data.draw(st.booleans()):
            world.pause()
        had_failed = world.state.phase == "stopping"  # by `fail_fast`
        world.stop("cancelled", {"type": "Cancelled", "message": "by a test"})
        started = set(world.started)
        for key in world.open:
            world.finish((key, data.draw(ENDS), None))
        assert world.final is not None
        assert world.final.status == ("failed" if had_failed else "cancelled")
        assert set(world.started) == started


@RANDOM
@given(workflows().filter(sound), st.data())
def test_a_decision_of_an_operator_holds(workflow: Workflow, data: st.DataObject) -> None:
    world = World(workflow, PARAMETERS).begin()
    while world.final is None:
        if data.draw(st.integers(0, 2)):
            key = data.draw(st.sampled_from(world.open))
            world.finish((key, data.draw(ENDS), None))
            continue
        waiting = sorted(
            node.name
            for node in world.plan.graph.nodes
            if not ((task_state := world.tasks.get(node.index)) and task_state.final)
        )
        name = data.draw(st.sampled_from(waiting))
        if data.draw(st.booleans()):
            world.skip(name)
            assert world.statuses[name] == "skipped"
        else:
            world.set_result(name, 7)
            assert world.statuses[name] in ("completed", "failed")  # failed: what it publishes is in error
    assert not world.open
    assert all(task_state.final for task_state in world.tasks.values())


@RANDOM
@given(workflows())
def test_every_workflow_survives_yaml_and_storage(workflow: Workflow) -> None:
    assert from_body(workflow.body()).digest == workflow.digest
    if sound(workflow):
        again = from_yaml(to_yaml(workflow))
        assert again.body() == workflow.body()
        assert again.digest == workflow.digest
