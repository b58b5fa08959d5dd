"""Tasks that hand a context on: each changes it, and those after it see the changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Context, task, workflow
from penstock.language.definitions import Pack
from penstock.testing.memory_workflow import MemoryWorkflow as World

pack = Pack("shop")


@task(dependencies=[])
async def extract(context: Context) -> str:
    context["rows"] = [context["day"], 2]
    return "two rows"


@task(
    dependencies=[extract],
    trigger_rule={"context": "rows", "op": "!=", "value": []},
    retry={"max_attempts": 3},
)
def load(context: Context) -> None:
    context["rows"].append(3)
    context.insert("loaded", True)


def test_context_tasks_make_a_workflow_that_hands_the_context_on() -> None:
    etl = workflow("etl", tasks=[load, extract])
    assert etl.ref == "shop.etl"
    assert load.choices.retry.max_attempts == 3
    world = World(etl, {"day": 1}).begin()
    for one in (extract, load):
        given = world.input(one.name)
        changes = run_here(one, given)
        world.finish((one.name, changes))
    assert world.final is not None
    assert world.final.output == {"day": 1, "rows": [1, 2, 3], "loaded": True}
    assert world.input("load") == {"context": {"day": 1, "rows": [1, 2]}}


def run_here(one: Any, params: dict[str, Any]) -> dict[str, Any]:
    answer = one.function(**one.bind(params))
    return asyncio.run(answer) if one.is_coroutine else answer


def test_a_context_knows_its_changes_and_keeps_stored_values() -> None:
    values = Context({"a": [1], "b": {"c": 1}, "n": 1, "t": True})
    values["a"].append(2)
    values["n"] = 1
    values["t"] = 1
    values.update(new=None)
    assert values.changes == {"a": [1, 2], "t": 1, "new": None}
    assert "b" in values
    assert len(values) == 5
    with pytest.raises(KeyError, match="is in the context already"):
        values.insert("a", 1)
    with pytest.raises(TypeError, match="set it to None"):
        del values["a"]
    with pytest.raises(TypeError, match="a name in the context is text"):
        values[1] = 2  # type: ignore[index]
