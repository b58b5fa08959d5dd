"""No text of a user steers the terminal of an operator: each command prints what was planted in every field."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from penstock import DurableContext, action, workflow
from penstock.language.terms.visible_text import visible, visible_json, visible_order
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.cli.test_hostile_arguments import commands, tree

PLANT = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x85 \x7f \u202e \u2066 \r end"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Written a second time, so that a slip in the module under test is found."""
NOT_RUN = {("completion",), ("explain",)}
"""What prints no text of an installation."""
SHOWS = ("show", "history", "logs", "watch", "why", "events", "dead-letters", "inquiries")
"""Commands that must show the planted text: without it the test would see nothing."""


@action(pack="evil")
async def talk(word: str) -> str:
    print(word)
    return word


@action(pack="evil")
async def fail(word: str) -> str:
    raise ValueError(word)


@workflow(pack="evil")
def both(word: str) -> object:
    return fail(word=talk(word=word))


@action(pack="evil")
async def wonder(ctx: DurableContext, word: str) -> str:
    return str(await ctx.ask(word))


def test_each_steering_character_is_an_escape() -> None:
    for code in (*range(0x3000), 0xFEFF, 0x1F600):
        text = visible(chr(code))
        assert not STEERING.search(text)
        assert text == chr(code) or STEERING.match(chr(code)), hex(code)
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[2J\u202e") == r"\x1b[2J\u202e"
    assert visible_json('"\x9b\u202e"') == r'"\u009b\u202e"'
    assert visible_order("\x1b\u202e") == "\x1b" + r"\u202e"


@pytest.fixture
async def planted(
    house: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """Return what commands may be asked about: ids and refs, in which everything that takes a text has the planted one."""
    monkeypatch.chdir(tmp_path)  # some commands write files
    await house.apply(*shop.ALL, talk, fail, both, wonder)
    await house.executor()
    worker = await house.worker(*shop.ALL, talk, fail, both, wonder)
    client = house.client
    ended = [await client.start(ref, {"word": PLANT}) for ref in ("evil.fail", "evil.both")]
    cancelled = await client.start("evil.talk", {"word": PLANT}, delay=600)
    await client.cancel(cancelled, reason=PLANT)
    event = await client.publish("shop.order_placed", {"id": 1, "note": PLANT})
    await house.quiet()
    waits = await client.start("evil.wonder", {"word": PLANT})
    await house.until("select 1 from inquiry")
    await house.ended(worker)  # what actions print in this process is not an output of a command
    letter = uuid4()
    await house.rows(
        """insert into dead_letter (id, queue, reason, body, headers, fingerprint)
        values ($1, 'event.created', $2::text, convert_to($2::text, 'UTF8'), '{}', $2::text)""",
        letter,
        PLANT,
    )
    return {
        "ended": [str(id) for id in (*ended, cancelled)],
        "other": [str(id) for id in (event, letter, waits)],
        "refs": ["evil.both", PLANT],
    }


def typed(command: tuple[str, ...], planted: dict[str, list[str]]) -> Iterator[list[str]]:
    """Give each id and ref as the first argument, and a planted text as every other one."""
    node = tree()
    for word in command:
        node = node.commands[word]
    count = sum(param.param_type_name == "argument" and param.required for param in node.params)
    if not any(param.param_type_name == "argument" for param in node.params):
        yield []
        return
    # `watch` waits for the end of what it is asked about.
    kinds = ("ended", "refs") if command == ("watch",) else ("ended", "other", "refs")
    for kind in kinds:
        for subject in planted[kind]:
            yield [subject, *[PLANT] * (count - 1)]


@pytest.mark.timeout(300)
async def test_commands_escape_texts_that_steer_a_terminal(planted: dict[str, list[str]]) -> None:
    shown: set[str] = set()

    async def look(command: tuple[str, ...], words: list[str]) -> int:
        async with asyncio.timeout(60):
            printed = await penstock(*command, *words)
        if printed.code != 2:  # wrong usage: typer repeats what the operator typed
            assert not STEERING.search(printed.out + printed.err), f"{command} {words}: {printed}"
        if printed.code < 2 and "owned" in printed.out and not {"--json", PLANT} & {*words}:
            shown.add(" ".join(command))
        return printed.code

    for command in commands():
        if command in NOT_RUN:
            continue
        codes = [(await look(command, words), words) for words in typed(command, planted)]
        if answered := [words for code, words in codes if code == 0]:
            await look(command, [*answered[0], "--json"])
    missing = [name for name in SHOWS if not any(command.startswith(name) for command in shown)]
    assert not missing, (missing, shown)


async def test_json_of_commands_has_the_text_as_it_is(planted: dict[str, list[str]]) -> None:
    [document] = (await penstock("show", planted["ended"][0], "--json")).documents
    assert document["params"] == {"word": PLANT}
