"""The examples of docs/workflows.md are true: both notations are one workflow, and it can be written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock import Workflow, action
from penstock.language.workflows import from_yaml, to_yaml

PAGE = (Path(__file__).parents[4] / "docs/workflows.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@action(pack="shop")
def reserve(order: dict) -> dict:  # type: ignore[type-arg]
    return {}


@action(pack="shop")
def pack(parcel: dict) -> str:  # type: ignore[type-arg]
    return ""


@action(pack="shop")
def charge(amount: float) -> str:
    return ""


@action(pack="shop")
def ship(parcels: list) -> str:  # type: ignore[type-arg]
    return ""


@action(pack="shop")
def release(order: dict, how: str) -> None:  # type: ignore[type-arg]
    pass


async def fetch(day: Any) -> list[Any]:
    return []


def test_the_example_can_be_written_in_both_ways() -> None:
    in_yaml = from_yaml(blocks("yaml")[0])
    assert in_yaml.digest == from_yaml(to_yaml(in_yaml)).digest
    namespace = dict(globals())
    exec(compile(blocks("python")[0], "docs", "exec"), namespace)
    in_python = namespace["fulfil"]
    assert isinstance(in_python, Workflow)
    assert in_python.ref == in_yaml.ref
    assert {task.name for task in in_python.tasks} == {task.name for task in in_yaml.tasks}
    written, recorded = ({task.name: task for task in w.tasks} for w in (in_yaml, in_python))
    for name, task in written.items():
        assert (recorded[name].kind, recorded[name].inquiry) == (task.kind, task.inquiry)
        assert recorded[name].retry == task.retry
    assert in_python.on_exit == in_yaml.on_exit


def test_functions_that_share_a_context_are_a_workflow_too() -> None:
    namespace = dict(globals())
    exec(compile(blocks("python")[1], "docs", "exec"), namespace)
    assert [task.name for task in namespace["nightly"].tasks] == ["extract", "load"]
