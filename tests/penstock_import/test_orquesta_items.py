"""The result of a task with items has the value that YAQL gives it: a list, a mapping with `items`, or a gap."""

from __future__ import annotations

import collections.abc  # noqa: F401 (yaql takes it for granted)
from pathlib import Path
from typing import Any

import pytest
import yaml
import yaql
from yaql.language import utils

from penstock.language.expressions import compile_template
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OF_WORKFLOW, PLAIN, OrquestaNames
from penstock_import.stackstorm import StackStormPack
from penstock_import.wanted_text import NotMapped

ENGINE = yaql.factory.YaqlFactory().create()
FUNCTIONS = yaql.create_context()
CRATES: list[Any] = [
    {"kg": 3, "of": {"pen": "a"}, "items": 7},
    {"kg": 4, "of": {"pen": "b"}, "items": 8},
]


def names(place: str = "end", shape: str = PLAIN) -> OrquestaNames:
    return OrquestaNames(
        place, (), shapes={"weigh": shape}, task="weigh", has_items=True, tasks_with_items={"weigh"}
    )


def value_in_stackstorm(text: str, results: list[Any]) -> Any:
    """Return the value of an expression where StackStorm has run a task with items, and each item has succeeded."""
    entries = [{"status": "succeeded", "result": result} for result in results]
    whole = {"items": entries}
    functions = FUNCTIONS.create_child_context()
    # The engine collects the results of the items. Without an item there is no event of one, and the result is whole.
    current = utils.convert_input_data(results or whole)
    task = utils.convert_input_data({"result": whole, "status": "succeeded"})
    functions.register_function(lambda: current, name="result")
    functions.register_function(lambda name=None: task, name="task")
    return plain(ENGINE(text).evaluate(context=functions))


def plain(value: Any) -> Any:
    if isinstance(value, dict | utils.MappingType):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    return [plain(item) for item in value]


def value_here(mapped: Any, results: list[Any]) -> Any:
    return compile_template(mapped)({"result": results, "tasks": {"weigh": {"result": results}}})


@pytest.mark.parametrize("results", [CRATES, []], ids=["two", "none"])
@pytest.mark.parametrize(
    "text",
    [
        "task(weigh).result.items.select($.result)",
        "task(weigh).result.items.select($.result.kg)",
        "task(weigh).result.items.select($.result.of.pen).first(null)",
        "task(weigh).result.items.result.of.pen",
        "task().result.items.result.kg.len()",
        "task(weigh).result.items.len()",
        "result()",
        "result().len()",
        "len(result())",
        "[result()]",
        "bool(result())",
        "result().items",
    ],
)
def test_result_of_items_is_that_of_yaql(text: str, results: list[Any]) -> None:
    expected = value_in_stackstorm(text, results)
    assert value_here(template(f"<% {text} %>", names()), results) == expected


def test_results_of_items_of_workflows_have_an_output() -> None:
    entries = [{"output": result} for result in CRATES]
    for text in (
        "task(weigh).result.items.select($.result.output.kg)",
        "task(weigh).result.items.result.output.kg",
    ):
        mapped = template(f"<% {text} %>", names(shape=OF_WORKFLOW))
        assert value_here(mapped, CRATES) == value_in_stackstorm(text, entries) == [3, 4]


@pytest.mark.parametrize("place", ["task", "end", "output"])
@pytest.mark.parametrize(
    "text",
    [
        "<% task(weigh).result %>",
        "<% task(weigh).result.kg %>",
        "<% task(weigh).result.select($.kg) %>",
        "<% task(weigh).result.items %>",
        "<% len(task(weigh).result.items) %>",
        "<% task(weigh).result.items[0].result %>",
        "<% task(weigh).result.items.select($.status) %>",
        "<% task(weigh).result.items.select($.resulting) %>",
        "<% task(weigh).result.items.where($.status = failed) %>",
        "<% task(weigh).result.items.status %>",
        "{{ task('weigh').result }}",
        "{{ task('weigh').result['items'] }}",
        "{{ task('weigh').result['items'][0].result }}",
        "{{ task('weigh').result['items'] | length }}",
    ],
)
def test_other_parts_of_the_result_are_gaps(text: str, place: str) -> None:
    reader = names(place)
    reader.task = "weigh" if place == "end" else "stack"
    with pytest.raises(NotMapped, match=r"items"):
        template(text, reader)


def test_result_of_no_items_is_whole_in_jinja() -> None:
    mapped = template("{{ result() | length }}", names())
    assert value_here(mapped, []) == 1  # as Jinja counts the keys of `{"items": []}`
    assert value_here(mapped, CRATES) == 2


def imported(folder: Path, output: str) -> tuple[dict[str, Any], list[str]]:
    """Return the workflow of a task with items, and the subjects of the gaps."""
    workflow = {
        "input": ["crates"],
        "tasks": {
            "weigh": {
                "with": "<% ctx(crates) %>",
                "action": "depot.say",
                "input": {"word": "<% item() %>"},
                "next": [
                    {"when": "<% succeeded() %>", "publish": [{"kept": "<% result() %>"}], "do": "stack"}
                ],
            },
            "stack": {"action": "depot.say", "input": {"word": output}},
        },
    }
    files = {
        "pack.yaml": {"ref": "depot", "name": "depot", "description": "Pens.", "version": "1.0.0", "author": "Pat"},
        "actions/say.yaml": {
            "name": "say", "runner_type": "python-script", "entry_point": "say.py", "parameters": {"word": {}}
        },
        "actions/flow.yaml": {
            "name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml",
            "parameters": {"crates": {"type": "array", "required": True}},
        },
        "actions/workflows/flow.yaml": workflow,
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    source = StackStormPack(folder)
    project = source.mapped()
    return project.workflows["flow"], [gap.what for gap in source.report.gaps]


def test_pack_with_items_reads_the_results_of_its_items(tmp_path: Path) -> None:
    flow, gaps = imported(tmp_path, "<% task(weigh).result.items.select($.result.stdout) %>")
    assert flow["tasks"]["stack"]["input"] == {
        "word": '{{ tasks.weigh.result | map(attribute="stdout") | list }}'
    }
    assert not [gap for gap in gaps if "result" in gap]


def test_pack_with_items_that_reads_their_whole_result_has_a_gap(tmp_path: Path) -> None:
    flow, gaps = imported(tmp_path, "<% task(weigh).result %>")
    assert flow["tasks"]["stack"]["input"] == {"word": "{{ none.to_do }}"}
    assert [gap for gap in gaps if "in StackStorm a mapping with a list `items`" in gap]
