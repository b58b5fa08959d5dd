"""The file of a pack: StackStorm registers none with a part that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_import.consumed import Node
from penstock_import.stackstorm_packs import refusals
from tests.penstock_import.test_reviewed_changes import of_pack, texts

HEAD = {"ref": "depot", "name": "Depot", "description": "Pens.", "version": "1.0.0", "author": "Pat"}


def subjects(head: dict[str, Any], folder: str = "depot") -> list[str]:
    children = {key: Node(number, None, value) for number, (key, value) in enumerate(head.items(), 1)}
    return [subject for _, subject, _ in refusals(Node(1, children), folder)]


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({}, "depot"),
        ({"version": "0.1.0-beta.1+x"}, "depot"),
        ({"ref": None, "name": "depot"}, "Depot-1"),
        ({"ref": None}, "depot"),
        ({"ref": ""}, "depot"),
    ],
)
def test_pack_that_stackstorm_accepts_has_no_line(changes: dict[str, Any], folder: str) -> None:
    assert subjects(HEAD | changes, folder) == []


@pytest.mark.parametrize(
    ("changes", "folder", "subject"),
    [
        ({"ref": "arista-cvp"}, "depot", "the ref of the pack, arista-cvp"),
        ({"ref": "Depot"}, "depot", "the ref of the pack, Depot"),
        ({"ref": 5}, "depot", "the ref of the pack, 5"),
        ({"ref": "_global"}, "depot", "the ref of the pack, _global"),
        (
            {"ref": None},
            "st2-depot",
            "the pack has no `ref`, and neither its name Depot nor its folder st2-depot is one",
        ),
        ({"version": 1.0}, "depot", "the version 1.0 of the pack, which is not of the form 1.0.0"),
        ({"version": "01.0.0"}, "depot", "the version 01.0.0 of the pack, which is not of the form 1.0.0"),
        ({"author": None}, "depot", "the `author` of the pack is not a text"),
    ],
)
def test_pack_that_stackstorm_refuses_has_a_line(changes: dict[str, Any], folder: str, subject: str) -> None:
    assert subjects(HEAD | changes, folder) == [subject]


def test_line_of_missing_keys_leaves_definitions_mapped(tmp_path: Path) -> None:
    trigger = {"name": "sold", "payload_schema": {"type": "object"}}
    head = {"ref": "depot", "name": "depot", "version": "1.0.0"}
    _, report = of_pack(tmp_path, {"pack.yaml": head, "triggers/sold.yaml": trigger})
    assert [text.partition(" |")[0] for text in texts(report)] == [
        "pack.yaml:1 the pack has no `description` and no `author`"
    ]
    assert (report.mapped["triggers"], report.found["packs that StackStorm refuses"]) == (1, 1)


@pytest.mark.parametrize(("name", "of_install"), [("bar", "names by `name`"), ("st2-bar", "refuses")])
def test_line_of_another_folder_names_effect_of_install(tmp_path: Path, name: str, of_install: str) -> None:
    head = {key: value for key, value in HEAD.items() if key != "ref"} | {"name": name}
    _, report = of_pack(tmp_path, {"pack.yaml": head})
    (line,) = [text for text in texts(report) if "lies in the folder depot" in text]
    assert f"which `st2 pack install` {of_install}" in line
