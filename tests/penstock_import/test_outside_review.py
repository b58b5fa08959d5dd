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
