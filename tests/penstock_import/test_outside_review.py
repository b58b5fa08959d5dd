"""Changes of meaning that a review from outside found, each with the smallest source that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.language.expressions import compile_template
from penstock_import.orquesta_expressions import template
from penstock_import.orquesta_names import OrquestaNames
from tests.penstock_import.test_reviewed_changes import SHELL, of_application, of_pack, texts

APP = "from celery import Celery, chain, group\napp = Celery('depot')\n"
TASKS = APP + "@app.task\ndef weigh(a=None, b=None): ...\n@app.task\ndef pack(a=None): ...\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<% ctx().l %>\n", "[1]\n"),
        ("{{ ctx().l }}\n", "[1]\n"),
        ("<% ctx().n %>\n", "None\n"),
        ("<% ctx().l %>", [1]),
        ("<% ctx().l %>\n\n", "[1]\n\n"),
        (" <% ctx().l %>", " [1]"),
        ("<% ctx().l %><% ctx().l %>\n", "[1][1]\n"),
        ("{{ ctx().l }} \n", "[1] \n"),
    ],
)
def test_expression_with_a_line_break_is_a_text_as_in_orquesta(written: str, expected: Any) -> None:
    """The expectations are the values of the evaluators of Orquesta 1.6."""
    names = OrquestaNames("task", {"l", "n"})
    names.variables = {"l", "n"}
    values = {"l": [1], "n": None}
    ours = compile_template(template(written, names))({"context": values, "parameters": values})
    assert ours == expected


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("action.concurrency", {"threshold": 1}),
        ("action.concurrency.attr", {"threshold": 1, "attributes": ["cmd"]}),
    ],
)
def test_limit_of_an_action_that_is_made_twice_is_named(
    tmp_path: Path, kind: str, parameters: dict[str, Any]
) -> None:
    one = {"action": "depot.act", "input": {"cmd": "x"}}
    publish = [{"out": "<% result().stdout %>"}]
    reads = {"when": "<% failed() %>", "publish": publish, "do": "two"}
    workflow = {"version": 1.0, "tasks": {"one": one | {"next": [reads]}, "two": one}}
    policy = {"name": "few", "policy_type": kind, "resource_ref": "depot.act", "parameters": parameters}
    files = {
        "actions/act.yaml": SHELL,
        "actions/flow.yaml": {"name": "flow", "runner_type": "orquesta", "entry_point": "workflows/flow.yaml"},
        "actions/workflows/flow.yaml": workflow,
        "policies/few.yaml": policy,
    }
    project, report = of_pack(tmp_path, files)
    assert "limits" in project.actions["act"] and "limits" in project.actions["act_kept"]
    assert any("the limit of few, which act and act_kept each have here" in text for text in texts(report))
    assert report.mapped["policies"] == 0
