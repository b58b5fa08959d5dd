"""A group names its own command for the word that other command lines use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import typer

from penstock.cli import app
from penstock.cli.command_group import USUAL_WORDS, CommandGroup
from tests.penstock.cli.commands import penstock

WHOLE = typer.main.get_command(app)
GROUPS = {name: group for name, group in vars(WHOLE)["commands"].items() if hasattr(group, "resolve_command")}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("secrets rm pin", "delete"),
        ("secrets unset pin", "delete"),
        ("secrets get pin", "list"),
        ("webhooks delete till", "rm"),
        ("routes rm far::*", "remove"),
        ("tokens delete ada", "revoke"),
        ("dead-letters rm 7", "drop"),
        ("users add ada", "create"),
        ("schedule get shop.nightly", "show"),
        ("ls", "executions"),
        ("start shop.charge", "run"),
    ],
)
async def test_usual_word_is_answered_by_the_command(words: str, command: str) -> None:
    refused = await penstock(*words.split())
    assert refused.code == 2
    assert f"Did you mean '{command}'?" in refused.err


async def test_mistyped_command_is_answered_by_similar_ones() -> None:
    assert "Did you mean 'delete'?" in (await penstock("secrets", "delte", "pin")).err
    assert "Did you mean" not in (await penstock("polls", "rm", "shop.files")).err


def test_every_group_answers_usual_words() -> None:
    assert all(isinstance(group, CommandGroup) for group in [WHOLE, *GROUPS.values()])
    commands = {command for group in [WHOLE, *GROUPS.values()] for command in vars(group)["commands"]}
    assert {command for meant in USUAL_WORDS.values() for command in meant} <= commands


def test_paragraph_of_help_text_is_one_line() -> None:
    texts = {words: command.help or "" for words, command in commands_below(WHOLE)}
    broken = [words for words, text in texts.items() if "\n" in text.replace("\n\n", "")]
    assert len(texts) > 100
    assert broken == []
    listed = json.loads(files("penstock.cli").joinpath("command_texts.json").read_text(encoding="utf-8"))
    assert listed["commands"]["demo"] == texts["demo"]


def commands_below(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, inside in getattr(command, "commands", {}).items():
        yield from commands_below(inside, f"{words} {name}".strip())


@pytest.mark.parametrize("words", ["events", "rules replay", "audit list", "audit export", "recoveries"])
def test_filter_of_other_rows_does_not_name_executions(words: str) -> None:
    command = dict(commands_below(WHOLE))[words]
    filters = [option for option in command.params if option.name in ("since", "until", "tenant")]
    assert filters
    assert [option.name for option in filters if "Only executions" in option.help] == []
