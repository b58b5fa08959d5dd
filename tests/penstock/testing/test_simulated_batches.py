"""Batches in a simulation: what is ready shares a call, and the clock stands meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from penstock import Batch, Defer, Item, NonRetryable, Trigger, action, each, workflow
from penstock.errors import ExecutionFailed
from penstock.language.definitions import Rule
from penstock.testing import Simulation

calls: list[list[str]] = []


@dataclass
class Text:
    text: str
    model: str = "small"


@action(pack="ai", batch=Batch(3, within="1m", by="model"), retry={"max_attempts": 2, "initial_delay": "10s"})
async def embed(items: list[Item[Text]]) -> list[Any]:
    calls.append([item.input.text for item in items])
    for item in items:
        item.log(f"embed {item.input.text}")
    return [_of(item) for item in items]


def _of(item: Item[Text]) -> Any:
    match item.input.text:
        case "bad":
            return NonRetryable("refused")
        case "flaky" if item.attempt == 1:
            return ConnectionError("not yet")
        case "later" if item.state is None:
            return Defer(delay=60, state="then")
    return len(item.input.text)


@workflow(pack="ai")
def embed_all(texts: list[str]) -> Any:
    return embed(text=each(texts))


asked = Trigger("ai.asked", schema={"text": "string"})
rules = [
    Rule(f"ai.rule{n}", trigger=asked, action=embed, params={"text": "{{ payload.text }}", "model": model})
    for n, model in enumerate(["small", "small", "large"])
]


@pytest.fixture
def simulation() -> Simulation:
    calls.clear()
    return Simulation(embed, embed_all, asked, *rules)


def test_fan_out_shares_calls_of_the_size(simulation: Simulation) -> None:
    run = simulation.run(embed_all, texts=["a", "bb", "ccc", "dd", "e"])
    assert run.result == [1, 2, 3, 2, 1]
    assert calls == [["a", "bb", "ccc"], ["dd", "e"]]
    assert run.attempts("embed", 1)[0].log == ["embed bb"]


def test_groups_are_kept_apart(simulation: Simulation) -> None:
    runs = simulation.publish(asked, {"text": "ab"})
    assert [run.result for run in runs] == [2, 2, 2]
    assert calls == [["ab", "ab"], ["ab"]]


def test_single_start_is_called_at_once(simulation: Simulation) -> None:
    began = simulation.now
    assert simulation.start(embed, text="a").result == 1
    assert (calls, simulation.now) == ([["a"]], began)


def test_each_item_has_its_own_end(simulation: Simulation) -> None:
    runs = [simulation._begin(embed, {"text": text}) for text in ("bad", "flaky", "later")]
    simulation.settle()
    assert [run.status for run in runs] == ["failed", "requested", "requested"]
    simulation.advance("2m")
    assert [run.status for run in runs] == ["failed", "completed", "completed"]
    assert calls == [["bad", "flaky", "later"], ["flaky"], ["later"]]
    with pytest.raises(ExecutionFailed, match="refused"):
        _ = runs[0].result


def test_fake_replaces_single_items(simulation: Simulation) -> None:
    simulation.fake(embed, does=lambda text, **_: f"fake {text}", times=1)
    assert simulation.run(embed_all, texts=["a", "b"]).result == ["fake a", 1]
    assert calls == [["b"]]


def test_lost_worker_runs_the_item_again(simulation: Simulation) -> None:
    simulation.lose_worker(embed, when="after")
    assert simulation.run(embed, text="a").result == 1
    assert calls == [["a"], ["a"]]


@action(pack="ai", batch=Batch(9, by="labels.customer"), searchable=["model"])
async def sort(items: list[Item[Text]]) -> list[int]:
    calls.append([item.input.text for item in items])
    return [len(items)] * len(items)


@workflow(pack="ai", run_labels={"customer": "acme"})
def sort_all(texts: list[str]) -> Any:
    return sort(text=each(texts))


def test_items_with_different_labels_are_apart() -> None:
    calls.clear()
    to_sort = Trigger("ai.to_sort", schema={"text": "string"})
    by_rule = Rule(
        "ai.sort_asked",
        trigger=to_sort,
        action=sort,
        params={"text": "{{ payload.text }}"},
        labels={"customer": "{{ payload.text }}"},
    )
    simulation = Simulation(sort, sort_all, to_sort, by_rule)
    assert simulation.start(sort_all, texts=["a", "b"]).result == [2, 2]
    simulation.publish(to_sort, {"text": "acme"})
    simulation.publish(to_sort, {"text": "bolt"})
    simulation.start(sort, text="c")
    assert calls == [["a", "b"], ["acme"], ["bolt"], ["c"]]
