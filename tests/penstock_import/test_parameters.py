"""Parameters of StackStorm's actions that cannot be mapped: the advice says what is true of the action."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.test_reviewed_changes import named, of_pack, texts


def lines(folder: Path, runner: str, parameters: dict[str, Any]) -> list[str]:
    action = {"name": "act", "runner_type": runner, "entry_point": "act.py", "parameters": parameters}
    return texts(of_pack(folder, {"actions/act.yaml": action})[1])


@pytest.mark.parametrize("runner", ["python-script", "local-shell-cmd", "orquesta"])
def test_parameter_that_says_nothing_is_no_gap(tmp_path: Path, runner: str) -> None:
    assert not [
        line for line in lines(tmp_path, runner, {"count": {}}) if " parameters" in line or "count" in line
    ]


def test_computed_default_of_an_action_is_computed_in_its_function(tmp_path: Path) -> None:
    about = {"name": {"type": "string", "default": "{{ user }}"}, "user": {"type": "string"}}
    (line,) = [line for line in lines(tmp_path, "python-script", about) if "the default {{ user }}" in line]
    assert line.endswith(
        "StackStorm computes it for a call without name: compute it in the function of the action."
    )


def test_gap_of_a_file_names_its_line(tmp_path: Path) -> None:
    about = {
        "cmd": {"default": "echo {{a}}", "immutable": True},
        "a": {"type": "string", "default": "{{ b }}"},
    }
    gaps = lines(tmp_path, "local-shell-cmd", about)
    assert any("this file has a gap at line 10" in line for line in gaps)
    assert any(line.startswith("actions/act.yaml:10 the default {{ b }}") for line in gaps)


def test_environment_of_a_runner_is_not_left_out(tmp_path: Path) -> None:
    _, report = of_pack(
        tmp_path, {"actions/act.yaml": {"name": "act", "runner_type": "other", "parameters": {}}}
    )
    assert not named(report, "env")
    (line,) = [
        line for line in lines(tmp_path, "remote-shell-cmd", {"env": {"type": "object"}}) if " env " in line
    ]
    assert "let the function set the variables" in line
