"""`penstock new`: a small project that runs at once."""

from __future__ import annotations

import keyword
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from penstock.cli.output import out
from penstock.errors import Conflict, InvalidInput
from penstock.language.definitions.qualified_name import is_name

TEMPLATES = {
    "module.py": "{name}.py",
    "test_module.py": "test_{name}.py",
    "pytest.ini": "pytest.ini",
    "gitignore": ".gitignore",
    "README.md": "README.md",
}
"""The files of `project_template`, and what they are called in a project."""


def new(
    name: Annotated[str, typer.Argument(help="Of the project and its pack, such as shop.")],
    into: Annotated[
        Path | None, typer.Option(help="The folder to make; by default one of that name, here.")
    ] = None,
) -> None:
    """Make a small project: definitions, tests that need no server, and a README with what to type."""
    _check_name(name)
    folder = into or Path(name)
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(
            f"{folder} is there already, and not empty", hint="Choose another name, or --into FOLDER."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for template, called in TEMPLATES.items():
        text = (files("penstock.cli") / "project_template" / f"{template}.template").read_text()
        (folder / called.format(name=name)).write_text(Template(text).safe_substitute(name=name))
    out.print(f"{folder} is made. Go on there:", highlight=False)
    out.print(f"    cd {folder} && pytest        [dim]# it is tested[/dim]", highlight=False)
    out.print(
        f"    penstock dev -m {name}.py    [dim]# it runs; README.md says what to type next[/dim]",
        highlight=False,
    )


def _check_name(name: str) -> None:
    if not is_name(name) or keyword.iskeyword(name):
        raise InvalidInput(
            f"{name!r} cannot be a pack's name and a Python module's",
            hint="Take small letters, digits and _, a letter first: shop, or order_desk.",
        )
    if name in sys.stdlib_module_names or name in ("penstock", "pytest"):
        raise InvalidInput(f"{name!r} is a module of Python's or of a library", hint="Choose another name.")


def add_to(app: typer.Typer) -> None:
    app.command()(new)
