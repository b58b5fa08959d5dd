"""Whatever goes wrong: the error, what to do next, and never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from penstock.cli import app
from penstock.cli.arguments import parse_id
from penstock.errors import NotFound
from penstock.service.explain_errors import explained
from tests.penstock.cli.commands import penstock

HOPELESS = "postgresql://nobody:hidden@127.0.0.1:1/nowhere"


async def test_a_database_without_a_schema_is_to_be_migrated(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", empty_database)
    said = await penstock("executions")
    assert said.code == 1
    assert "penstock migrate" in said.err
    assert "Traceback" not in said.err


async def test_a_database_that_does_not_answer_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", HOPELESS)
    said = await penstock("executions")
    assert said.code == 1
    assert "PENSTOCK_DATABASE_URL" in said.err
    assert "hidden" not in said.err
    assert "Traceback" not in said.err


async def test_without_a_database_the_way_to_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    said = await penstock("executions")
    assert said.code == 1
    assert "penstock dev" in said.err


async def test_a_misspelt_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABSE_URL", "x")
    assert "PENSTOCK_DATABSE_URL" in (await penstock("executions")).err


def test_a_fault_of_ours_says_so_and_how_to_see_more() -> None:
    error = explained(ZeroDivisionError("division by zero"))
    assert "ZeroDivisionError" in error.message
    assert "PENSTOCK_LOG_LEVEL=debug" in str(error.hint)
    known = NotFound("no such thing")
    assert explained(known) is known


async def test_wrong_usage_ends_with_2() -> None:
    assert (await penstock("run")).code == 2
    assert (await penstock("rnu")).code == 2
    assert (await penstock("executions", "--limit", "0")).code == 2


@pytest.mark.parametrize("words", ["show 6cb2e41d", "signal 6cb2e41d paid", "executions --parent 6cb2e41d"])
async def test_part_of_an_id_is_refused_with_its_remedy(words: str) -> None:
    ran = await penstock(*words.split())
    assert ran.code == 2
    text = " ".join(ran.err.replace("│", " ").split())
    assert "'6cb2e41d' is not an id, such as" in text
    assert "The page of the object shows the whole id" in text
    assert "valid UUID" not in text


def test_every_parameter_that_is_an_id_has_this_remedy() -> None:
    tree: Any = typer.main.get_command(app)
    ids = {}
    for name, command in tree.commands.items():
        for leaf in getattr(command, "commands", {name: command}).values():
            for descriptor in (parameter.type_descriptor for parameter in leaf.params):
                if "UUID" in str(descriptor.annotation):
                    ids[f"{name} {leaf.name}"] = descriptor.parameter_info.parser
    assert len(ids) > 20
    assert [name for name, parser in ids.items() if parser is not parse_id] == []


async def test_every_command_explains_itself() -> None:
    said = await penstock("--help")
    assert said.code == 0
    for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]
        assert command.help, command.name
        assert command.help[0].isupper(), command.name


def test_a_reader_may_close_the_pipe_early() -> None:
    line = f"{sys.executable} -m penstock --help | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60)
    assert not re.search("Traceback|BrokenPipe", done.stderr)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "--help", "explain NotFound", "actions --help"])
@pytest.mark.parametrize(
    ("where", "reason"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")]
)
def test_output_that_takes_nothing_is_named(words: str, where: str, reason: str, unbuffered: str) -> None:
    ran = subprocess.run(
        ["sh", "-c", f'exec "$0" -m penstock {words} {where}', sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "COLUMNS": "200"},
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"error: standard output cannot be written: {reason}")
    assert "doctor" not in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_escapes_characters_outside_its_encoding(encoding: str, options: list[str]) -> None:
    word = "Zürich \u2713 \U0001f600"
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", "test", "payload.word", f"word={word}", *options],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    printed = json.loads(ran.stdout.decode(encoding))
    assert (printed["value"] if options else printed) == word
