"""The command `penstock new`, which creates a small project that runs at once."""

from __future__ import annotations

import keyword
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from penstock.cli.output import out
from penstock.errors import Conflict, InvalidInput
from penstock.language.definitions.qualified_name import is_name
from penstock.language.packs.shipped_schemas import KINDS, file_name, shipped

ALWAYS = {
    "pytest.ini": "pytest.ini",
    "gitignore": ".gitignore",
    "compose.yaml": "compose.yaml",
    "README.md": "README.md",
}
IN_PYTHON = {"module.py": "{name}.py", "test_module.py": "test_{name}.py", **ALWAYS}
"""The files of `project_template` for a project in Python, and their names in the project."""
IN_YAML = {
    "pack.yaml": "{name}/pack.yaml",
    "orders.py": "{name}/orders.py",
    "test_pack.py": "test_{name}.py",
    **ALWAYS,
}
"""The files of `project_template` for a project whose definitions are a pack, and their names."""


def new(
    name: Annotated[str, typer.Argument(help="The name of the project and its pack, such as shop.")],
    into: Annotated[
        Path | None,
        typer.Option(
            help="The folder to create. Default: a folder with the name of the project, in the current folder."
        ),
    ] = None,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Write the definitions as a YAML pack, which an editor can check.")
    ] = False,
) -> None:
    """Create a small project: definitions, tests that need no server, servers for Compose, and a README with the next
    steps."""
    _check_name(name)
    folder = into or Path(name)
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(
            f"the folder {folder} exists already, and is not empty",
            hint="Choose another name, or --into FOLDER.",
        )
    source, edited = (name, f"{name}/pack.yaml") if yaml else (f"{name}.py", f"{name}.py")
    for template, called in (IN_YAML if yaml else IN_PYTHON).items():
        text = (files("penstock.cli") / "project_template" / f"{template}.template").read_text()
        filled = Template(text).safe_substitute(name=name, source=source, edited=edited)
        _write(folder / called.format(name=name), filled)
    if yaml:
        for kind in KINDS:
            _write(folder / "schemas" / file_name(kind), shipped(kind))
    out.print(f"{folder} is created. Next commands:", highlight=False)
    lines = {f"cd {folder}": "", "pip install pytest": "once", "python -m pytest": "run its tests"}
    if find_spec("pytest") is not None:
        del lines["pip install pytest"]
    lines[f"penstock dev -m {source}"] = "run the project. README.md lists the next commands"
    width = max(map(len, lines))
    for line, why in lines.items():
        command_line = f"    {line:{width}}    [dim]# {why}[/dim]" if why else f"    {line}"
        out.print(command_line, highlight=False)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _check_name(name: str) -> None:
    if not is_name(name) or keyword.iskeyword(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a pack and of a Python module",
            hint="Use small letters, digits and _, with a letter first: shop or order_desk.",
        )
    if name in sys.stdlib_module_names or name in ("penstock", "pytest"):
        raise InvalidInput(f"{name!r} is the name of a Python or library module", hint="Choose another name.")


def add_to(app: typer.Typer) -> None:
    app.command()(new)
