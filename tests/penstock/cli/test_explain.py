"""`penstock explain`."""

from __future__ import annotations

import json
import re
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
