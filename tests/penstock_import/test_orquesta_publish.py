"""Two transitions that publish one variable differ from StackStorm only where they may publish two values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock_import.stackstorm import StackStormPack

SAY = {
    "name": "say",
    "runner_type": "local-shell-cmd",
    "parameters": {"cmd": {"default": "date", "immutable": True}},
}
READER = {"action": "depot.say", "input": {"word": "<% ctx(word) %>"}}


def gaps_of(
    folder: Path, steps: list[dict[str, Any]], variables: list[Any] | None = None, **tasks: dict[str, Any]
) -> list[str]:
    """Return the gaps about what the task `weigh` publishes with these transitions, and other tasks."""
    workflow = {
        "input": ["crate"],
        "vars": variables or [],
        "tasks": {"weigh": {"action": "depot.say", "next": steps}, "left": READER, "right": READER, **tasks},
    }
    files = {
        "pack.yaml": {"ref": "depot", "name": "depot", "description": "Pens.", "version": "1.0.0", "author": "Pat"},
        "actions/say.yaml": SAY,
        "actions/flow.yaml": {
            "name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml", "parameters": {"crate": {}}
        },
        "actions/workflows/flow.yaml": workflow,
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    source = StackStormPack(folder)
    source.mapped()
    return [gap.what for gap in source.report.gaps if "publish" in gap.what]


def step(publish: list[dict[str, Any]], do: str, limit: int) -> dict[str, Any]:
    return {"when": f"<% succeeded() and ctx(crate) > {limit} %>", "publish": publish, "do": do}


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ([{"word": "<% result().stdout %>"}], [{"word": "<% result().stdout %>"}], True),
        ([{"word": "pen"}], [{"word": "pen"}], True),
        ([{"a": 1}, {"word": "<% ctx(a) %>"}], [{"a": 1}, {"word": "<% ctx(a) %>"}], True),
        ([{"word": "<% result().stdout %>"}], [{"word": "<% result().stderr %>"}], False),
        ([{"word": "pen"}], [{"word": "ink"}], False),
        ([{"crate": 1}, {"word": "<% ctx(crate) %>"}], [{"word": "<% ctx(crate) %>"}], False),
        ([{"word": "pen"}, {"word": "ink"}], [{"word": "pen"}], False),
    ],
)
def test_two_transitions_with_one_value_have_no_gap(
    tmp_path: Path, first: list[dict[str, Any]], second: list[dict[str, Any]], is_same: bool
) -> None:
    gaps = gaps_of(tmp_path, [step(first, "left", 3), step(second, "right", 5)])
    named = [gap for gap in gaps if " word " in gap]
    assert ("weigh publishes word in two transitions, and both may be taken" in named) is not is_same
    assert any("for some of the tasks after it" in gap for gap in named) is not is_same


@pytest.mark.parametrize(("value", "is_same"), [("pen", True), ("<% result().stdout %>", False)])
def test_two_branches_with_one_text_have_no_gap(tmp_path: Path, value: str, is_same: bool) -> None:
    ends = {"when": "<% succeeded() %>", "publish": [{"word": value}]}
    branches: dict[str, Any] = {name: {"action": "depot.say", "next": [ends]} for name in ("left", "right")}
    gaps = gaps_of(tmp_path, [{"when": "<% succeeded() %>", "do": "left, right"}], **branches)
    assert any("word is published by left and by right" in gap for gap in gaps) is not is_same


def test_part_of_a_definition_within_another_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "sensors").mkdir()
    (tmp_path / "pack.yaml").write_text(
        "ref: depot\nname: depot\ndescription: Pens.\nversion: 1.0.0\nauthor: Pat\n"
    )
    trigger = {"name": "weighed", "payload_info": ["crate"]}
    sensor = {
        "class_name": "Scale",
        "entry_point": "scale.py",
        "poll_interval": 60,
        "trigger_types": [trigger],
    }
    (tmp_path / "sensors" / "scale.yaml").write_text(yaml.safe_dump(sensor))
    source = StackStormPack(tmp_path)
    source.mapped()
    assert [gap.what for gap in source.report.gaps if "payload_info" in gap.what] == [
        "payload_info of trigger weighed: StackStorm ignores it"
    ]


def chain(**steps: Any) -> dict[str, Any]:
    """Return tasks with these transitions."""
    return {name: {"action": "depot.say", "next": rows} for name, rows in steps.items()}


def publishing(value: str, do: str | None = None, when: str = "succeeded()") -> dict[str, Any]:
    return {"when": f"<% {when} %>", "publish": [{"word": value}]} | ({"do": do} if do else {})


@pytest.mark.parametrize(
    ("tasks", "is_replaced"),
    [
        (chain(one=[publishing("a", "two")], two=[publishing("b", "last")]), True),
        (chain(one=[publishing("a", "two")], two=[{"do": "three"}], three=[publishing("b", "last")]), True),
        (chain(one=[publishing("a", "two, last")], two=[publishing("b", "last")]), False),
        (
            chain(one=[publishing("a", "two")], two=[{"do": "three, last"}], three=[publishing("b", "last")]),
            False,
        ),
        (chain(one=[publishing("a", "two")], two=[publishing("b", "last"), {"do": "side"}], side=[]), False),
        (
            chain(
                one=[publishing("a", "two")],
                two=[publishing("b", "last"), {"when": "<% failed() %>", "do": "side"}],
                side=[],
            ),
            True,
        ),
        (
            chain(
                one=[publishing("a", "side"), {"do": "two"}],
                two=[publishing("b", "last")],
                side=[{"do": "last"}],
            ),
            False,
        ),
        (chain(one=[publishing("a")], two=[publishing("b", "last")]), False),
    ],
)
def test_later_value_of_one_branch_replaces_the_earlier(
    tmp_path: Path, tasks: dict[str, Any], is_replaced: bool
) -> None:
    """The conductor carries each published value with the branches behind it. At a join it merges them one after another, so
    that a branch with the first value alone may restore it."""
    last: dict[str, Any] = {"last": {"action": "depot.say", "join": "all"}}
    gaps = gaps_of(tmp_path, [{"do": "one, left"}], **tasks, **last)
    assert any("is published by" in gap for gap in gaps) is not is_replaced, gaps


def test_published_block_of_jinja_is_an_expression(tmp_path: Path) -> None:
    text = "{% if 'x' in result() %}{{ result().x }}{% else %}none{% endif %}"
    assert gaps_of(tmp_path, [{"when": "<% succeeded() %>", "publish": [{"word": text}], "do": "left"}]) == []


@pytest.mark.parametrize(
    ("start", "value", "is_named"),
    [
        ({"a": 1}, {"b": 2}, True),
        ({}, {"b": 2}, True),
        ({}, "<% result() %>", True),
        ({"a": 1}, "text", False),
        ("text", {"b": 2}, False),
    ],
)
def test_published_mapping_beside_its_reader_is_named(
    tmp_path: Path, start: Any, value: Any, is_named: bool
) -> None:
    """The conductor merges a mapping in place into the one of the start, which branches side by side share."""
    tasks: dict[str, Any] = {
        "left": {
            "action": "depot.say",
            "next": [{"when": "<% succeeded() %>", "publish": [{"word": value}], "do": "last"}],
        },
        "last": {"action": "depot.say"},
    }
    gaps = gaps_of(tmp_path, [{"do": "left, right"}], variables=[{"word": start}], **tasks)
    named = "left publishes into the mapping word, and right beside it may see this in StackStorm"
    assert (named in gaps) is is_named, gaps
