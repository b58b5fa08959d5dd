"""A newcomer gets the fault, its place, and the remedy; never a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Trigger, action
from penstock.cli import build
from penstock.errors import DefinitionError
from penstock.language.loading import load
from tests.flows.installation import AS_USED, Installation
from tests.newcomer.mistakes import COMMANDS, PACKS, PYTHON
from tests.penstock.cli.commands import penstock
from tests.servers import databases
from tests.servers.postgres import Postgres


@action(pack="shop")
async def charge(order: int) -> str:
    return f"charged {order}"


@action(pack="shop")
async def greet(name: str) -> str:
    return name


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a file puts its folder on the path of modules: other tests are to find their own."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_there_are_sixty() -> None:
    assert len(PYTHON) + len(PACKS) + len(COMMANDS) >= 60


@pytest.mark.parametrize("mistake", PYTHON)
def test_a_mistake_in_python_says_where_and_how_to_mend_it(mistake: str, tmp_path: Path) -> None:
    (tmp_path / "mistaken.py").write_text(PYTHON[mistake][0])
    explained(tmp_path / "mistaken.py", PYTHON[mistake][1], r"mistaken\.py(:\d+|, line \d+)")


@pytest.mark.parametrize("mistake", PACKS)
def test_a_mistake_in_a_pack_says_where_and_how_to_mend_it(mistake: str, tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(PACKS[mistake][0])
    explained(tmp_path, PACKS[mistake][1], r"pack\.yaml(:\d+|, line \d+)")


def explained(path: Path, word: str, where: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        load(path).documents()
    error = caught.value
    text = f"{error.message}\n{error.hint}"
    assert word in text, text
    assert re.search(where, text), text


@pytest.fixture(scope="module")
async def shop(postgres_server: Postgres, template: str) -> AsyncIterator[str]:
    name = databases.new_name()
    address = await databases.create(postgres_server, name, template=template)
    async with Installation(address, None, **AS_USED) as house:
        await house.apply(charge, greet, Trigger("shop.order_placed", schema={"id": "integer"}))
    yield address
    await databases.drop(postgres_server, name)


@pytest.mark.parametrize("mistake", COMMANDS)
async def test_a_mistake_on_the_command_line_says_how_to_mend_it(
    mistake: str, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", shop)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    words, expected = COMMANDS[mistake]
    result = await penstock(*words)
    assert result.code in (1, 2), result
    assert expected in result.err, result.err
    assert "Traceback" not in result.err


def test_lint_knows_the_task_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mistaken.py"
    file.write_text(
        "from penstock import action\n@action(pack='shop', executor='proces')\ndef f() -> None: ...\n"
    )
    result = CliRunner().invoke(build(), ["lint", str(file)])
    assert (result.exit_code, "mistaken.py:2" in result.output) == (1, True), result.output
    assert "no task executor 'proces'" in result.output
    assert "Did you mean 'process'?" in " ".join(result.output.split())
    monkeypatch.setenv("PENSTOCK_EXECUTORS", '{"proces": {"class": "shop.gpu:Gpu"}}')
    assert CliRunner().invoke(build(), ["lint", str(file)]).exit_code == 0
