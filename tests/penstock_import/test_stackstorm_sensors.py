"""Sensors of StackStorm as poll triggers, files beside them, and the name of a pack without a ref."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.test_reviewed_changes import named, of_pack, texts

SENSOR: dict[str, Any] = {
    "class_name": "Mail",
    "entry_point": "mail.py",
    "poll_interval": 30,
    "trigger_types": [{"name": "came", "payload_schema": {"type": "object"}}],
}


def test_calls_of_a_poll_are_named(tmp_path: Path) -> None:
    project, report = of_pack(tmp_path, {"sensors/mail.yaml": SENSOR, "sensors/mail.py": ""})
    assert project.triggers["came"]["poll"]["every"] == 30
    assert named(report, "sensors/mail.yaml:3 the calls of poll_came")
    assert report.mapped["triggers"] == 1


@pytest.mark.parametrize("folder", ["sensors", "rules", "triggers", "policies", "aliases"])
def test_file_beside_definitions_is_named(tmp_path: Path, folder: str) -> None:
    files = {
        "sensors/mail.yaml": SENSOR,
        "sensors/mail.py": "",
        f"{folder}/helper.py": "",
        f"{folder}/table.csv": "",
        f"{folder}/README.md": "",
        f"{folder}/__init__.py": "",
        f"{folder}/lib/h2.py": "",
        f"{folder}/lib/table.csv": "",
        f"{folder}/only/more.yaml": "",
    }
    _, report = of_pack(tmp_path, files)
    assert sorted(gap.file for gap in report.gaps if gap.what == f"{gap.file} is not read") == [
        f"{folder}/helper.py",
        f"{folder}/lib",
        f"{folder}/only/more.yaml",
        f"{folder}/table.csv",
    ]


def test_files_beside_a_sensor_in_a_folder_are_named(tmp_path: Path) -> None:
    sensor = SENSOR | {"entry_point": "lib/mail.py"}
    files = {"sensors/mail.yaml": sensor, "sensors/lib/mail.py": "", "sensors/lib/helper.py": ""}
    _, report = of_pack(tmp_path, files)
    assert [gap.file for gap in report.gaps if gap.what == f"{gap.file} is not read"] == [
        "sensors/lib/helper.py"
    ]


@pytest.mark.parametrize(
    ("head", "is_named"),
    [
        ({"name": "bar"}, True),
        ({"name": "Bar pack"}, True),
        ({"name": "depot"}, False),
        ({"name": "bar", "ref": "depot"}, False),
    ],
)
def test_pack_without_ref_in_another_folder_is_named(
    tmp_path: Path, head: dict[str, Any], is_named: bool
) -> None:
    _, report = of_pack(tmp_path, {"pack.yaml": head})
    assert named(report, "pack.yaml:1 the pack has no `ref`, and lies in the folder depot") is is_named, (
        texts(report)
    )
