"""Whatever is typed: an answer or a refusal with an exit code, never a traceback, never a wait without an end."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import typer.main

from penstock import Limit, Schedule, Trigger, cli
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

ODD = (
    *("", " ", "-", "--", "---", "--json", "--no-such", "-x", "a=b", "a.b", "a::b", "shop.charge", "pack.name.more"),
    *("0", "-1", "1e999", "nan", "inf", "9" * 400, "0x10", "1_000", "½", "true", "null", "[]", "{}", '{"a": 1}'),
    *("@", "@/no/such/file", "@/dev/null", "@/proc/self/mem", "@.", "../../etc/passwd", "/dev/full", "file:///etc/passwd"),
    *("'; drop table execution; --", "%s%n", "$(id)", "`id`", "{{ 9 ** 9 ** 9 ** 9 }}", "{% for x in range(10**9) %}"),
    *("[" * 5000, '{"a":' * 5000, "x" * 100_000, "a\nb", "\ud800", "\x7f\x1b[31m", "\u202e", "日本", "*" * 300, "a**b"),
    *("00000000-0000-0000-0000-000000000000", "now", "2026-13-45", "yesterday", "* * * * *", "P1Y", "100/min"),
)  # fmt: skip
RUNS_FOR_EVER = {
    "executor",
    "worker",
    "api",
    "gateway",
    "worker-conformance",
    "dev",
    "demo",
    "migrate",
    "doctor",
}
"""Services, and what starts or examines servers: their arguments are those of settings."""
ENDS_IT = ("--wait", "-w", "--follow", "-f", "--watch")
"""Options that wait for something that may not come."""


@cache
def tree() -> Any:
    return typer.main.get_command(cli.app)


def commands() -> list[tuple[str, ...]]:
    """Every command and what is below it."""
    found: list[tuple[str, ...]] = []

    def walk(command: object, words: tuple[str, ...]) -> None:
        below = getattr(command, "commands", None)
        if below is None:
            found.append(words)
        for name, one in (below or {}).items():
            walk(one, (*words, name))

    walk(tree(), ())
    return [words for words in found if words[0] not in RUNS_FOR_EVER]


@pytest.fixture
async def shopping(house: Installation, named: str) -> Installation:
    await house.apply(*shop.ALL, Trigger("shop.odd"), Limit(1, ref="shop.few", scope="shop.charge"))
    await house.apply(Schedule("shop.late", action=shop.charge, params={"order": 1}, every=3600))
    return house


@pytest.mark.parametrize("seed", [5])
async def test_no_argument_makes_a_command_fail_as_ours(shopping: Installation, seed: int) -> None:
    draw = random.Random(seed)
    for command in commands():
        words = typed(command, draw)
        said = await penstock(*command, *words)
        line = " ".join((*command, *(repr(word[:40]) for word in words)))
        assert said.code in (0, 1, 2), f"{line}: {said}"
        assert "Traceback" not in said.err + said.out, f"{line}: {said.err[-1500:]}"
        assert "this should not have happened" not in said.err, f"{line}: {said.err[-1500:]}"
    await shopping.sound()


def typed(command: tuple[str, ...], draw: random.Random) -> list[str]:
    """Draw as many odd words as it takes arguments, and perhaps an option of its own."""
    found = tree()
    for word in command:
        found = found.commands[word]
    words = [draw.choice(ODD) for one in found.params if one.param_type_name == "argument"]
    options = [one for one in found.params if one.param_type_name == "option" and one.opts[0] not in ENDS_IT]
    if options and draw.random() < 0.5:
        option = draw.choice(options)
        words = [option.opts[0], *([] if getattr(option, "is_flag", False) else [draw.choice(ODD)]), *words]
    return words
