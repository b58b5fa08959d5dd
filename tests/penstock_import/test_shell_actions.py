"""Commands and scripts of StackStorm run here as its local runner runs them: in bash, a script by its own first line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

COMMAND = {"cmd": {"type": "string", "immutable": True}}


def imported(folder: Path, files: dict[str, Any]) -> tuple[Simulation, Report]:
    """Return a simulation of the pack `depot` with these files, and the report of its import."""
    pack = folder / "depot"
    for name, content in {
        "pack.yaml": {
            "ref": "depot",
            "name": "depot",
            "description": "Pens.",
            "version": "1.0.0",
            "author": "Pat",
        },
        **files,
    }.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    source = StackStormPack(pack)
    project = source.mapped()
    keep_applicable(project, source.report)
    project.write(folder / "ours", "", source.report)
    return Simulation(str(folder / "ours")), source.report


def command(text: str) -> dict[str, Any]:
    parameters = {"cmd": {"type": "string", "immutable": True, "default": text}}
    return {"name": "act", "runner_type": "local-shell-cmd", "parameters": parameters}


def test_command_runs_in_bash(tmp_path: Path) -> None:
    text = 'words=(a b); echo -e "${words[1]}\\tx"'
    simulation, _ = imported(tmp_path, {"actions/act.yaml": command(text)})
    assert simulation.run("depot.act").result["stdout"] == "b\tx"


def test_command_with_blocks_has_the_lines_of_stackstorm(tmp_path: Path) -> None:
    """StackStorm's Jinja drops the line of a block; here-documents and continued lines depend on it."""
    text = "cat <<END\n  {% if true %}\na\n  {% endif %}\nb\nEND\n"
    simulation, _ = imported(tmp_path, {"actions/act.yaml": command(text)})
    assert simulation.run("depot.act").result["stdout"] == "a\nb"


def test_script_is_run_by_its_first_line(tmp_path: Path) -> None:
    """`bash script` would leave out the option that ends it at the first error."""
    action = {"name": "act", "runner_type": "local-shell-script", "entry_point": "act.sh"}
    script = "#!/bin/bash -e\nfalse\necho late\n"
    simulation, _ = imported(tmp_path, {"actions/act.yaml": action, "actions/act.sh": script})
    run = simulation.run("depot.act")
    assert run.status == "failed"
    assert "exit code 1" in str(run.error)


@pytest.mark.parametrize(
    ("kind", "value", "printed"),
    [("integer", 0, ""), ("integer", 5, "5"), ("string", "0", "0"), ("boolean", False, "0")],
)
def test_positional_argument_is_written_as_in_stackstorm(
    tmp_path: Path, kind: str, value: Any, printed: str
) -> None:
    action = {
        "name": "act",
        "runner_type": "local-shell-script",
        "entry_point": "act.sh",
        "parameters": {"n": {"type": kind, "position": 0}},
    }
    files = {"actions/act.yaml": action, "actions/act.sh": '#!/bin/sh\necho "$# <$1>"\n'}
    simulation, _ = imported(tmp_path, files)
    assert simulation.run("depot.act", {"n": value}).result["stdout"] == f"1 <{printed}>"


def test_script_of_another_language_runs(tmp_path: Path) -> None:
    action = {"name": "act", "runner_type": "local-shell-script", "entry_point": "act.sh"}
    script = "#!/usr/bin/env python3\nprint(6 * 7)\n"
    simulation, _ = imported(tmp_path, {"actions/act.yaml": action, "actions/act.sh": script})
    assert simulation.run("depot.act").result["stdout"] == 42


def test_variable_that_stackstorm_sets_is_named(tmp_path: Path) -> None:
    action = {"name": "run", "runner_type": "local-shell-script", "entry_point": "run.sh"}
    flow = {"tasks": {"one": {"action": "core.local", "input": {"cmd": "echo $ST2_ACTION_PACK_NAME"}}}}
    _, report = imported(
        tmp_path,
        {
            "actions/act.yaml": command('curl -H "X-Auth-Token: $ST2_ACTION_AUTH_TOKEN" x'),
            "actions/run.yaml": action,
            "actions/run.sh": "#!/bin/sh\n\necho $ST2_ACTION_API_URL\n",
            "actions/flow.yaml": {
                "name": "flow",
                "runner_type": "orquesta",
                "entry_point": "workflows/flow.yaml",
            },
            "actions/workflows/flow.yaml": flow,
        },
    )
    named = {(gap.file, gap.line): gap.what for gap in report.gaps}
    assert "ST2_ACTION_API_URL" in named["actions/run.sh", 3]
    whole = str(named)
    assert "ST2_ACTION_AUTH_TOKEN" in whole
    assert "ST2_ACTION_PACK_NAME" in whole
