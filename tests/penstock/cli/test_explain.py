"""`penstock explain`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock import errors
from penstock.cli import build
from penstock.cli.explain_texts import TEXTS
from penstock.cli.reported_errors import REPORTED
from tests.penstock.cli.commands import penstock

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r'(?:TaskError\(\s*"|"type": "(?=\w+", "message"))([A-Z]\w+)",')
"""The name of a failure where code creates one."""


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return build({"explain"})


@pytest.mark.parametrize("error", TEXTS)
def test_it_gives_reason_and_remedy_and_names_no_path(app: typer.Typer, error: str) -> None:
    said = CliRunner().invoke(app, ["explain", error])
    assert said.exit_code == 0
    for part in (f"{error}: ", "Why: ", "What to do: "):
        assert part in said.output
    assert "](" not in said.output
    assert ".md" not in said.output
    assert " ".join((getattr(errors, error).__doc__ or "").split()) in said.output
    told = json.loads(CliRunner().invoke(app, ["explain", error, "--json"]).output)
    assert told["error"] == error
    assert told["do"] in said.output


@pytest.mark.parametrize("error", REPORTED)
def test_failure_without_a_class_is_explained(app: typer.Typer, error: str) -> None:
    printed = CliRunner().invoke(app, ["explain", error])
    assert printed.exit_code == 0
    assert f"{error}: {REPORTED[error].meaning}" in printed.output
    assert ".md" not in printed.output


def test_hints_of_examples_are_those_of_the_code() -> None:
    hints = {
        error: " ".join(text.message.partition("hint:")[2].split())
        for error, text in TEXTS.items()
        if text.message and "hint:" in text.message
    }
    patterns = [
        pattern
        for folder in ("common/penstock", "services")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "explain_texts.py"
        for pattern in _texts(ast.parse(path.read_text()))
    ]
    assert len(hints) > 8
    assert [e for e, hint in hints.items() if not any(re.fullmatch(p, hint) for p in patterns)] == []


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield a pattern for each text of a module. A value that the text is filled with can be any text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield re.escape(" ".join(node.value.split()))
        elif isinstance(node, ast.JoinedStr):
            parts = [re.escape(str(v.value)) if isinstance(v, ast.Constant) else ".+" for v in node.values]
            if sum(len(part) for part in parts if part != ".+") > 20:
                yield "".join(parts)


def test_each_reported_name_has_a_text() -> None:
    names = set()
    for folder in ("common/penstock", "services"):
        for path in (ROOT / folder).rglob("*.py"):
            if "testing" not in path.parts:
                names |= set(NAMED.findall(path.read_text()))
    assert len(names) > 12
    assert names - REPORTED.keys() - vars(errors).keys() == {"AttemptOver", "Error", "Build"}


async def test_a_name_that_is_none_is_told_the_nearest() -> None:
    said = await penstock("explain", "NotFund")
    assert (said.code, "'NotFound'" in said.err) == (1, True)
