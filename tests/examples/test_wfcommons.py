"""The loader of scientific workflows, on small instances in the public format."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from penstock.errors import DefinitionError
from penstock.language.workflows.graph import Graph
from penstock.language.workflows.serialization import from_yaml, to_yaml
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.examples.wfcommons import instances
from tests.flows.installation import Installation

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def wfcommons() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wfcommons_example", ROOT / "examples" / "wfcommons.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["wfcommons_example"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tasks_come_after_parents_or_writers_of_their_files(wfcommons: ModuleType) -> None:
    workflow = wfcommons.load(HERE / "wfcommons" / "harvest-1.5.json", scale=0.01)
    graph = Graph(workflow)
    sources = {node.name: sorted(graph[source].name for source in node.sources) for node in graph.nodes}
    assert sources == {
        "split": [],
        "weigh": ["split"],
        "weigh_2": ["split"],
        "weigh_3": ["split"],
        "sum_up": ["weigh", "weigh_2", "weigh_3"],
        "plot": ["sum_up"],
    }
    assert graph[graph.index["weigh_3"]].step.input == {
        "program": "weigh",
        "seconds": 0.1625,
        "files": 1,
        "bytes": 8,
    }


def test_older_versions_of_the_format_are_read_too(wfcommons: ModuleType) -> None:
    graph = Graph(wfcommons.load(HERE / "wfcommons" / "harvest-1.4.json"))
    assert [(node.name, node.sources) for node in graph.nodes] == [
        ("split_ID01", ()),
        ("weigh_ID02", (0,)),
        ("plot_ID03", (1,)),
    ]


def test_an_instance_runs_to_its_end(wfcommons: ModuleType) -> None:
    workflow = wfcommons.load(HERE / "wfcommons" / "harvest-1.5.json", ref="wfcommons.harvest")
    assert from_yaml(to_yaml(workflow)).digest == workflow.digest
    world = World(workflow).begin()
    while world.open:
        world.finish(*((key, world.input(key[0])["bytes"]) for key in world.open))
    assert world.final is not None
    assert world.final.output == {"tasks": 6, "last": {"plot": 30000}}


@pytest.mark.parametrize("shape", ["montage", "epigenomics"])
async def test_an_instance_of_a_thousand_tasks_runs_unchanged(
    wfcommons: ModuleType, database: str, tmp_path: Path, shape: str
) -> None:
    instance = getattr(instances, shape)()
    file = tmp_path / f"{shape}-large-001.json"
    file.write_text(json.dumps(instance))
    workflow = wfcommons.load(file, scale=0.0001)
    async with Installation(database, None) as house:
        await house.start(wfcommons.work, workflow, concurrency=200)
        output = await house.client.result(await house.client.start(workflow.ref), timeout=60)
        rows = await house.rows(
            "select task, created_at, finished_at from execution where parent is not null"
        )
        await house.sound()
    tasks = {task["name"]: task for task in instances.tasks(instance)}
    ran = {row["task"]: row for row in rows}
    assert ran.keys() == tasks.keys()
    assert output["tasks"] == len(tasks) == len(rows) > 950
    for name, task in tasks.items():
        for parent in task["parents"]:
            assert ran[parent]["finished_at"] <= ran[name]["created_at"]


def test_a_file_that_is_changed_in_place_does_not_lead_round_in_a_circle(wfcommons: ModuleType) -> None:
    jobs = [
        wfcommons.Job(id="read", name="read", reads=["state"], children=["write"]),
        wfcommons.Job(id="write", name="write", writes={"state": 1}),
        wfcommons.Job(id="look", name="look", reads=["state"]),
    ]
    tasks = wfcommons.document(jobs, "w.w", "", 1.0)["tasks"]
    assert {name: task["needs"] for name, task in tasks.items()} == {
        "read": [],
        "write": ["read"],
        "look": ["write"],
    }


async def test_the_action_says_how_much_it_wrote(wfcommons: ModuleType) -> None:
    assert await wfcommons.work(program="x", seconds=0.0, files=2, bytes=7) == {"files": 2, "bytes": 7}


@pytest.mark.parametrize("text", ["{}", "[]", '{"workflow": {"tasks": [{}]}}', "no json"])
def test_a_text_that_is_not_an_instance_is_refused(wfcommons: ModuleType, tmp_path: Path, text: str) -> None:
    file = tmp_path / "instance.json"
    file.write_text(text)
    with pytest.raises(DefinitionError, match="not in the WfCommons format"):
        wfcommons.load(file)


def test_tasks_that_are_called_alike_or_strangely_get_names_of_their_own(wfcommons: ModuleType) -> None:
    jobs = [
        wfcommons.Job(id=str(n), name=name) for n, name in enumerate(["a.b", "a b", "1st", "größe", "a-b"])
    ]
    names = list(wfcommons.document(jobs, "w.w", "", 1.0)["tasks"])
    assert names == ["a_b", "a_b_2", "t_1st", "gr_e", "a_b_3"]
    assert json.dumps(names)
