"""Batches of actions: how they are declared, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock import Batch, DurableContext, Item, Pack, action, command_action, load
from penstock.errors import ConfigurationError, DefinitionError, InvalidInput, OutsideRun
from penstock.language.terms.executor_names import refuse_batches_elsewhere
from penstock.run.steering import Defer

pack = Pack("ai")


@dataclass
class Text:
    text: str
    model: str = "small"


async def _embed(items: list[Item[Text]]) -> list[list[float] | Exception | Defer]:
    return [[float(len(item.input.text))] for item in items]


embed = action(batch=Batch(100, within="200ms", by="model"), searchable=["model"], ref="ai.embed")(_embed)


def test_action_has_the_parameters_and_the_result_of_one_item() -> None:
    body = embed.body()
    assert body["batch"] == {"size": 100, "within": 0.2, "by": ["model"]}
    assert body["parameters"]["required"] == ["text"]
    assert body["parameters"]["additionalProperties"] is False
    assert body["result"] == {"type": "array", "items": {"type": "number"}}
    assert embed.bind({"text": "a"}) == {"input": Text("a")}
    with pytest.raises(InvalidInput, match=r"parameters\.text: is missing"):
        embed.bind({"model": "large"})


def test_default_options_are_stored_for_executors() -> None:
    assert Batch(5).numbers() == {"size": 5, "within": 0.1, "by": []}


def test_batch_is_grouped_by_a_label() -> None:
    by_customer = action(batch=Batch(9, by=["model", "labels.customer"]), ref="ai.embed")(_embed)
    assert by_customer.body()["batch"]["by"] == ["model", "labels.customer"]
    assert Batch(9, by="labels.customer").by_labels
    assert not Batch(9, by="model").by_labels


def test_likely_label_is_named() -> None:
    with pytest.raises(DefinitionError) as error:
        action(batch=Batch(9, by="label.customer"), ref="ai.embed")(_embed)
    assert error.value.hint == "Did you mean 'labels.customer'?"


def test_parameters_of_one_item_are_passed_by_name() -> None:
    assert embed.call(text="a").parameters == {"text": "a"}
    with pytest.raises(TypeError, match="by name"):
        embed.call("a")


def test_function_is_called_directly_with_items_of_a_test() -> None:
    item = Item(Text("abc"))
    assert asyncio.run(embed([item])) == [[3.0]]
    with pytest.raises(OutsideRun, match="belongs to no run"):
        _ = item.execution_id


def test_yaml_declares_a_batch_of_a_function(tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(
        "name: ml\nactions:\n  embed: {function: 'code:embed', batch: {size: 20, within: 1s, by: [text, labels.team]}}\n"
    )
    (tmp_path / "code.py").write_text(
        "from dataclasses import dataclass\nfrom penstock import Item\n\n@dataclass\nclass Text:\n    text: str\n\n"
        "def embed(items: list[Item[Text]]) -> list[int]:\n    return [len(item.input.text) for item in items]\n"
    )
    [declared] = load(tmp_path).actions.values()
    assert declared.body()["batch"] == {"size": 20, "within": 1, "by": ["text", "labels.team"]}
    assert declared.body()["executor"] == "thread"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"size": 0}, "batch.size: should be greater than or equal to 1"),
        ({"size": 1001}, "batch.size: should be less than or equal to 1000"),
        ({"size": "9"}, "batch.size: should be a valid integer"),
        ({"size": 9, "within": "61s"}, "batch.within: is 61 s: items wait at most 60 s"),
        ({"size": 9, "within": -1}, "batch.within: must be between 0 and 100 years"),
        ({"size": 9, "by": "colour"}, "batch: by names no parameter: colour"),
        ({"size": 9, "by": "label.customer"}, "batch: by names no parameter: label.customer"),
        ({"size": 9, "by": "labels.Customer"}, "is not a path of a label: 'labels.Customer'"),
        ({"size": 9, "by": ["text", "text"]}, "names one path twice"),
        ({"size": 9, "for": "1s"}, "batch.for: unknown option"),
        ({}, "batch.size: is missing"),
        (9, "batch: should be a mapping of options"),
    ],
)
def test_wrong_options_are_refused_with_their_place(options: Any, fault: str) -> None:
    with pytest.raises(DefinitionError) as error:
        action(batch=options, ref="ai.embed")(_embed)
    assert fault in str(error.value)
    assert error.value.hint or "parameter twice" in fault


def _single(text: str) -> int: ...  # type: ignore[empty-body]
def _numbers(items: list[Item[int]]) -> list[int]: ...  # type: ignore[empty-body]
def _untyped(items: list[Item]) -> list[int]: ...  # type: ignore[empty-body, type-arg]
def _two(items: list[Item[Text]], more: int) -> list[int]: ...  # type: ignore[empty-body]
def _one_result(items: list[Item[Text]]) -> int: ...  # type: ignore[empty-body]
def _open(items: list[Item[dict[str, Any]]]) -> list[int]: ...  # type: ignore[empty-body]
async def _durable(ctx: DurableContext, items: list[Item[Text]]) -> list[int]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (_single, "takes one parameter, a list of items"),
        (_numbers, "an object"),
        (_untyped, "takes one parameter, a list of items"),
        (_two, "takes one parameter, a list of items"),
        (_one_result, "returns a list with one result for each item"),
        (_open, "the items name no parameters"),
        (_durable, "a durable function takes no batches"),
    ],
)
def test_function_that_cannot_take_a_batch_is_refused(function: Callable[..., Any], fault: str) -> None:
    with pytest.raises(DefinitionError, match=fault) as error:
        action(batch=Batch(9))(function)
    assert error.value.hint


@pytest.mark.parametrize("executor", ["dask", "ray", "remote", "own"])
def test_other_task_executors_take_no_batches(executor: str) -> None:
    with pytest.raises(DefinitionError, match="takes no batches"):
        action(batch=Batch(9), executor=executor, ref="ai.embed")(_embed)


def test_program_takes_no_batches() -> None:
    with pytest.raises(DefinitionError, match="only a Python function takes batches"):
        command_action("ai.run", ["true"], batch={"size": 9})


def test_batch_is_neither_added_nor_taken_away_by_a_copy() -> None:
    assert embed.with_options(batch=Batch(7)).body()["batch"]["size"] == 7
    with pytest.raises(DefinitionError, match="its function takes a batch"):
        embed.with_options(batch=None)


def test_route_with_another_executor_is_refused_at_the_start() -> None:
    refuse_batches_elsewhere([embed], {"gpu": "thread", "far": "dask"}, ["gpu", "default"])
    with pytest.raises(ConfigurationError, match="the task executor dask of the route far takes no batches"):
        refuse_batches_elsewhere([embed], {"gpu": "thread", "far": "dask"}, ["far"])
