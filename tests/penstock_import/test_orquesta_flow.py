"""Imported workflows run the tasks of Orquesta with their values, and have its output, in every order of ends."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from penstock import NonRetryable
from penstock.testing import Simulation
from tests.penstock_import.orquesta_conductor import Conductor, End
from tests.penstock_import.test_reviewed_changes import of_pack

CASES = int(os.environ.get("PENSTOCK_TEST_IMPORT_CASES", "3"))
"""The number of random workflows that are mapped and compared."""
pytestmark = pytest.mark.timeout(600 + 5 * CASES)
SAY = {
    "name": "say",
    "runner_type": "python-script",
    "entry_point": "say.py",
    "parameters": {"v": {"type": "string"}, "w": {"type": "string"}},
}
FLOW = {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"}
SUCCEEDED = "<% succeeded() %>"
FAILED = "<% failed() %>"


def workflow_of(tasks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a workflow of these tasks, each of which reads two variables, which are the output, too."""
    reads = {"v": "<% ctx(v) %>", "w": "<% ctx(w) %>"}
    tasks = {name: {"action": "depot.say", "input": reads} | task for name, task in tasks.items()}
    return {
        "vars": [{"v": "0"}, {"w": "0"}],
        "tasks": tasks,
        "output": [{key: value} for key, value in reads.items()],
    }


def same_runs(folder: Path, workflow: dict[str, Any], orders: list[dict[str, End]]) -> bool:
    """Return whether the workflow is mapped without a gap. If it is, each order of ends must have the same run as there."""
    files = {"actions/say.yaml": SAY, "actions/flow.yaml": FLOW, "actions/workflows/flow.yaml": workflow}
    project, report = of_pack(folder, files)
    if report.mapped["workflows"] == 0:
        return False
    project.write(folder / "ours", "", report)
    for ends in orders:
        theirs = Conductor(workflow, ends).play()
        simulation = Simulation(str(folder / "ours"))
        for name, end in ends.items():
            error = None if end.succeeds else NonRetryable("no")
            simulation.fake(name, returns=None if error else {}, raises=error, takes=end.seconds)
        run = simulation.run("depot.flow")
        started = {step.path: step.input for step in run.steps if step.path in workflow["tasks"]}
        assert started == theirs.started, (workflow, ends)
        assert (run.status == "completed") == (theirs.status == "succeeded"), (workflow, ends)
        assert run.status != "completed" or run.result == theirs.output, (workflow, ends)
    return True


def publishing(value: str, *targets: str, when: str = SUCCEEDED) -> dict[str, Any]:
    return {"when": when, "publish": [{"v": value}], "do": list(targets)}


@pytest.mark.parametrize(
    ("branch", "is_mapped"),
    [
        ({"one": [publishing("a", "two")], "two": [publishing("<% ctx(v) + 'b' %>", "last")]}, True),
        ({"one": [publishing("a", "two", "last")], "two": [publishing("b", "last")]}, False),
        ({"one": [publishing("a", "two")], "two": [publishing("b", "last"), {"when": FAILED, "do": ["noop"]}]}, False),
    ],
)  # fmt: skip
def test_values_of_one_branch_are_those_of_the_conductor(
    tmp_path: Path, branch: dict[str, Any], is_mapped: bool
) -> None:
    tasks = {name: {"next": steps} for name, steps in branch.items()}
    tasks["first"] = {"next": [{"when": SUCCEEDED, "do": ["one", "side"]}]}
    tasks |= {"side": {"next": [{"when": SUCCEEDED, "do": ["last"]}]}, "last": {"join": "all"}}
    orders = [
        {name: End(seconds if name == "side" else 2, name != failing) for name in tasks}
        for seconds in (1, 3, 9)
        for failing in ("", "two")
    ]
    assert same_runs(tmp_path, workflow_of(tasks), orders) is is_mapped


def random_tasks(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Return tasks with up to two tasks before each, which publish before and after a fork."""
    names = [f"t{number}" for number in range(rng.randint(2, 6))]
    tasks: dict[str, dict[str, Any]] = {name: {"next": []} for name in names}
    for place, name in enumerate(names[1:], 1):
        sources = rng.sample(names[:place], min(place, rng.choice([0, 1, 1, 1, 2])))
        if len(sources) > 1:
            tasks[name]["join"] = "all"
        for source in sources:
            when = rng.choice([SUCCEEDED] * 6 + [FAILED, None, "<% completed() %>"])
            alike = [step for step in tasks[source]["next"] if step.get("when") == when]
            if alike and rng.random() < 0.7:
                alike[0]["do"].append(name)
            else:
                tasks[source]["next"].append({"when": when, "do": [name]} if when else {"do": [name]})
    for name, task in tasks.items():
        if rng.random() < 0.3:
            when = rng.choice([SUCCEEDED, SUCCEEDED, FAILED])
            task["next"].append({"when": when, "do": [rng.choice(["noop", "continue", "fail"])]})
        for step in task["next"]:
            if rng.random() < 0.3:
                text = rng.choice([f"of {name}", "one", "<% ctx(v) + 'x' %>", "<% ctx(w) + 'y' %>"])
                step["publish"] = [{rng.choice("vw"): text}]
    return tasks


def test_random_workflows_run_as_with_the_conductor(tmp_path: Path) -> None:
    count = seed = 0
    while count < CASES:
        seed += 1
        rng = random.Random(seed)
        tasks = random_tasks(rng)
        orders = [
            {name: End(rng.uniform(1, 50), rng.random() >= risk) for name in tasks}
            for risk in (0, 0, 0.2, 0.4)
        ]
        count += same_runs(tmp_path / str(seed), workflow_of(tasks), orders)
