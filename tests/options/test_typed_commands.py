"""Every option and argument of every command: words of wrong types, and the neighbours of bounds that lie outside of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.language.terms.column_ranges import INTEGER, SMALLINT
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.cli.test_hostile_arguments import ENDS_IT, commands, tree

pytestmark = pytest.mark.parametrize("transport", ["postgres"], indirect=True)
BOUNDS = {"priority": SMALLINT}
"""The largest number of an option; INTEGER for others."""
LONELY = "\ud800{["
"""A word that is neither text, JSON, a name nor a filter."""


def typed(parameter: Any) -> Any:
    return parameter.type_descriptor.annotation


def wrong_words(parameter: Any) -> Iterator[str]:
    """Yield words that the parameter does not take."""
    kind = typed(parameter)
    if kind in (int, float):
        yield "no number"
        if parameter.min is not None:
            yield str(parameter.min - 1)
        if parameter.max is not None:
            yield str(parameter.max + 1)
        elif kind is int:
            yield str(BOUNDS.get(parameter.name, INTEGER) + 1)
        if kind is float:
            yield "nan"
    elif "UUID" in str(kind) or kind is datetime or (isinstance(kind, type) and issubclass(kind, Enum)):
        yield "no such"


def plain_word(parameter: Any) -> str:
    """Return a word that a demanded argument or option takes."""
    kind = typed(parameter)
    if "UUID" in str(kind):
        return str(UUID(int=0))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return str(next(iter(kind)).value)
    return "1" if kind in (int, float) else "shop.charge"


def lines() -> Iterator[tuple[list[str], bool]]:
    """Yield command lines in which one word is odd, and whether it is of a wrong type."""
    for command in commands():
        node = tree()
        for word in command:
            node = node.commands[word]
        for odd in node.params:
            if odd.opts[0] in ENDS_IT or getattr(odd, "is_flag", False):
                continue
            wrong = list(wrong_words(odd))
            for word in wrong or [LONELY]:
                words = list[str]()
                for other in node.params:
                    if other is odd or other.required:
                        text = word if other is odd else plain_word(other)
                        if other.param_type_name == "argument":
                            words += ["--", text] if text.startswith("-") and "--" not in words else [text]
                        else:
                            words.insert(0, f"{other.opts[0]}={text}")
                yield [*command, *words], bool(wrong)


@pytest.fixture
async def shopping(house: Installation, database: str, monkeypatch: Any, tmp_path: Path) -> Installation:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    await house.apply(*shop.ALL)
    return house


async def test_command_answers_every_wrong_word(shopping: Installation) -> None:
    faults = []
    for words, wrong in lines():
        output = await penstock(*words)
        text = output.err + output.out
        untyped = "Traceback" in text or "this should not have happened" in text
        unexplained = output.code == 1 and len(text.strip().splitlines()) < 2
        if untyped or unexplained or output.code not in ((1, 2) if wrong else (0, 1, 2)):
            faults.append(f"{words!r}: {output.code} {text[-300:]}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)
    await shopping.sound()
