"""`penstock explain`."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from penstock import errors
from penstock.cli import build
from penstock.cli.explain_texts import TEXTS
from tests.penstock.cli.commands import penstock


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


async def test_a_name_that_is_none_is_told_the_nearest() -> None:
    said = await penstock("explain", "NotFund")
    assert (said.code, "'NotFound'" in said.err) == (1, True)
