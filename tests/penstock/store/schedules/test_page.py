"""docs/schedules.md says what is so: its examples load, its commands and options exist, its names are told."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from penstock.cli import app
from penstock.language.definitions import Schedule
from penstock.language.definitions.schedule import MissedFires
from penstock.language.loading import load
from penstock.language.schedules.compiled_schedule import compile_schedule
from penstock.language.schedules.reserved_context import RESERVED
from penstock.store.schedules.firing import context_of

PAGE = (Path(__file__).parents[4] / "docs/schedules.md").read_text()


def block(language: str) -> str:
    """Return all blocks of the page in this language, as one file."""
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S))


def test_the_python_example_loads(tmp_path: Path) -> None:
    path = tmp_path / "page_of_schedules.py"
    path.write_text(block("python"))
    found = load(path)
    found.check()
    assert list(found.schedules) == ["shop.report", "shop.stocktaking"]
    for schedule in found.schedules.values():
        compile_schedule(schedule.body())


def test_the_yaml_example_loads(tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text("name: shop\n")
    (tmp_path / "schedules.yaml").write_text(block("yaml"))
    schedule, with_expiry = load(tmp_path).schedules.values()
    assert isinstance(schedule, Schedule)
    assert isinstance(with_expiry, Schedule)
    assert (with_expiry.priority, with_expiry.expires) == (5, 240)
    assert schedule.missed == MissedFires(catch_up="all", at_most=10, spread=600)


def test_every_command_and_option_exists() -> None:
    commands = typer.main.get_command(app).commands["schedule"].commands  # type: ignore[attr-defined]
    lines = re.findall(r"^    (?:\$ )?penstock schedule (.*)$", PAGE, re.M)
    rows = [
        words
        for row in re.findall(r"^\| (`[a-z].*?) \|", PAGE, re.M)
        for words in re.findall(r"`(.*?)`", row)
    ]
    typed = [shlex.split(line) for line in lines]
    typed += [shlex.split(words) for words in rows if words.split()[0] in commands]
    assert {words[0] for words in typed} == set(commands)
    for words in typed:
        known = {name for parameter in commands[words[0]].params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, words


def test_every_value_of_the_context_is_documented() -> None:
    schedule = compile_schedule(Schedule("clock.s", action="clock.tick", every=5).body())
    told = context_of(schedule, schedule.spec.anchor, "due", recovery=False)
    assert set(told) == set(RESERVED)
    assert [name for name in RESERVED if f"`{name}`" not in PAGE] == []
