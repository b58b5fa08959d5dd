"""The README says what is so: its examples run, its commands exist, its links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import typer

from penstock.cli import app
from penstock.language.loading import load
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def typed() -> list[list[str]]:
    """The words of every `penstock ...` line of the README."""
    lines = re.findall(r"^    penstock (.*)$", README, re.M)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture
async def house(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    async with Installation(database, None) as installation:
        yield installation


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(blocks("python")[0])
    return path


async def test_the_first_example_runs(house: Installation, shop: Path) -> None:
    await house.start(*load(shop))
    [publish] = [words for words in typed() if words[0] == "publish"]
    event = (await penstock(*publish, "--json")).document["id"]
    [row] = await house.until("select execution_id from enforcement where status = 'executed'")
    assert await house.client.result(row["execution_id"], timeout=20) == {
        "charged": "charged 25.00 for order 7",
        "parcels": ["packed pen", "packed ink"],
    }
    assert "shop.fulfil_orders" in (await penstock("show", event)).out
    [run] = [words for words in typed() if words[0] == "run"]
    assert (await penstock(*run)).out.strip() == '"charged 9.50 for order 8"'
    assert "shop.fulfil" in (await penstock("executions")).out


async def test_the_second_example_runs(house: Installation, shop: Path, tmp_path: Path) -> None:
    await house.start(*load(shop))
    code = blocks("python")[1]
    program = tmp_path / "program.py"
    program.write_text(code)
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    [promised] = re.findall(r"print\(.*\)  # (.*)$", code, re.M)
    assert ran.stdout.strip() == promised, ran.stderr


async def test_the_yaml_example_runs(house: Installation, tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(blocks("yaml")[0])
    await house.start(*load(tmp_path))
    await house.client.publish("stock.delivered", {"what": "nothing"})
    await house.client.publish("stock.delivered", {"what": "a pen"})
    [row] = await house.until("select execution_id from enforcement where status = 'executed'")
    assert await house.client.result(row["execution_id"], timeout=20) == {"WHAT": "A PEN"}


def test_every_command_and_option_exists() -> None:
    root = typer.main.get_command(app)
    for words in typed():
        command = root
        for word in words:
            if not hasattr(command, "commands"):
                break
            assert word in command.commands, words
            command = command.commands[word]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_every_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    pages = README + (ROOT / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", pages, re.M)) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    gone = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert gone == []
