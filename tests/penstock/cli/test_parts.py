"""A command's file is found by its name, without importing the others."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import typer

from penstock.cli import PARTS


def test_each_file_adds_the_commands_that_it_is_found_by() -> None:
    for parts in PARTS.values():
        for part, named in parts.items():
            alone = typer.Typer()
            import_module(f"penstock.cli.{part}").add_to(alone)
            commands = [c.name or c.callback.__name__ for c in alone.registered_commands if c.callback]
            assert sorted(named) == sorted(
                [*commands, *(str(group.name) for group in alone.registered_groups)]
            )


def test_the_version_is_told_without_importing_anything_heavy() -> None:
    script = "import sys; from penstock.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    heavy = "print([name for name in ('pydantic', 'asyncpg', 'typer', 'rich') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script + heavy], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_help_lists_all_commands_and_imports_none_of_them() -> None:
    script = "import sys; from penstock.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    heavy = "print([name for name in ('pydantic', 'asyncpg', 'structlog') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script + heavy], capture_output=True, text=True, check=True)
    *lines, imported = ran.stdout.splitlines()
    whole = subprocess.run(
        [sys.executable, "-c", "from penstock.cli import app; app(['--help'], prog_name='penstock')"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert lines == whole.stdout.splitlines()
    assert imported == "[]"
