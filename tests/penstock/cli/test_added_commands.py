"""Packages add groups of commands through entry points, and can neither hide nor break one of ours."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol

import pytest

from penstock.cli import PARTS
from tests.kit.packages import write_package
from tests.penstock.cli.commands import penstock

COMMANDS = """
import typer
from penstock.cli.output import Json, json_line, out
from penstock.errors import NotFound

app = typer.Typer()

@app.callback(rich_help_panel="Shelves", no_args_is_help=True)
def stock() -> None:
    "Look after our stock."

@app.command()
def count(shelf: str, json: Json = False) -> None:
    if shelf != "poetry":
        raise NotFound(f"there is no shelf {shelf}", hint="Name one of: poetry.")
    json_line({"shelf": shelf}) if json else out.print(shelf)

@app.command()
def sell() -> None: ...
"""


class Install(Protocol):
    def __call__(self, name: str, code: str, entry: str) -> None: ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(name: str, code: str, entry: str) -> None:
        write_package(tmp_path, name, code, "penstock.commands", entry)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    return install


async def test_added_group_runs_with_our_output_and_errors(install: Install) -> None:
    install("acme_stock_a", COMMANDS, "stock = acme_stock_a:app")
    counted = await penstock("stock", "count", "poetry", "--json")
    assert (counted.code, counted.document) == (0, {"shelf": "poetry"})
    refused = await penstock("stock", "count", "prose")
    assert refused.code == 1
    assert "error: there is no shelf prose\nhint:  Name one of: poetry." in refused.err


async def test_help_lists_added_groups_beside_all_of_ours(install: Install) -> None:
    install("acme_stock_b", COMMANDS, "stock = acme_stock_b:app")
    text = (await penstock("--help")).out
    words = {line.strip("│ ").split(" ")[0] for line in text.splitlines()}
    ours = {command for parts in PARTS.values() for names in parts.values() for command in names}
    assert {*ours, "import", "stock"} <= words
    assert "Shelves" in text
    assert text.index("─ Run Penstock ") < text.index("│ import ") < text.index("─ Define and check ")


async def test_command_of_ours_cannot_be_replaced(install: Install) -> None:
    install("acme_stock_c", COMMANDS, "run = acme_stock_c:app")
    refused = await penstock("--help")
    assert refused.code == 1
    assert (
        "the package acme_stock_c adds the command 'run', but Penstock has a command of this name"
        in refused.err
    )
    assert "pip uninstall acme_stock_c" in refused.err
    assert "Usage: penstock run" in (await penstock("run", "--help")).out


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("acme_stock_d", "import no_such_library", "No module named 'no_such_library'"),
        ("acme_stock_e", "app = 5", "acme_stock_e:app is not a typer.Typer"),
        ("acme_stock_f", "", "has no attribute 'app'"),
        ("acme_stock_g", "raise SystemError", "SystemError"),
    ],
)
async def test_unusable_package_is_named_with_its_reason(
    install: Install, name: str, code: str, reason: str
) -> None:
    install(name, code, f"stock = {name}:app")
    refused = await penstock("stock", "count")
    assert refused.code == 1
    assert f"the command 'stock' of the package {name} cannot be loaded" in refused.err
    assert reason in refused.err


async def test_commands_of_ours_load_no_package(install: Install) -> None:
    install("acme_stock_h", "import no_such_library", "stock = acme_stock_h:app")
    assert (await penstock("explain", "--help")).code == 0
