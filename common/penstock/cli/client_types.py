"""The command `penstock types`, which writes a module with the types of every action and workflow."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Json, json_line, out
from penstock.cli.server import read
from penstock.client.generated_types import module as python_module
from penstock.client.generated_types import typescript
from penstock.client.generated_types.module import digest_of
from penstock.errors import InvalidInput
from penstock.language.terms.visible_text import visible


class Language(StrEnum):
    """The languages of modules with types."""

    PYTHON = "python"
    TYPESCRIPT = "typescript"


MODULE_OF = {Language.PYTHON: python_module.module_of, Language.TYPESCRIPT: typescript.module_of}
SUFFIXES = (".ts", ".mts", ".cts")


def types(
    file: Annotated[
        Path | None, typer.Argument(help="The file to write. Without a file, the module is printed.")
    ] = None,
    language: Annotated[
        Language | None,
        typer.Option(help="The language of the module. Default: typescript for a file *.ts, else python."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only check: exit code 1 if the file does not match the current definitions."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write a module with the types of all actions and workflows. In Python it has a class for each pack: `await
    client.run(shop.charge.call(order=7))`. In TypeScript it types a client: `new Client<Actions>()`."""
    if file is None and check:
        raise typer.BadParameter("With --check, also name the file.")
    if language is None:
        is_typescript = file is not None and file.suffix in SUFFIXES
        language = Language.TYPESCRIPT if is_typescript else Language.PYTHON
    module = MODULE_OF[language](read(lambda client: client.definitions(("action", "workflow"))))
    digest = digest_of(module)
    if file is None:
        json_line({"module": module, "digest": digest}) if json else sys.stdout.write(visible(module))
        return
    stale = digest_of(_text_of(file)) != digest
    if stale and not check:
        _write(file, module)
    state = ("stale" if check else "written") if stale else "current"
    if json:
        json_line({"file": str(file), "is": state, "digest": digest})
    else:
        sentences = {
            "current": "matches the current definitions.",
            "written": "is written.",
            "stale": f"does not match the current definitions. Write it again: penstock types {file}{_option(file, language)}",
        }
        out.print(f"{file} {sentences[state]}", markup=False, highlight=False)
    if state == "stale":
        raise typer.Exit(1)


def _option(file: Path, language: Language) -> str:
    """Return the option for a language that the name of the file does not say."""
    is_said = (file.suffix in SUFFIXES) == (language is Language.TYPESCRIPT)
    return "" if is_said else f" --language {language}"


def _text_of(file: Path) -> str:
    if file.exists() and not file.is_file():  # a device may be endless
        raise InvalidInput(f"{file} is not a file", hint="Name another one.")
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}", hint="Name another file.") from None


def _write(file: Path, module: str) -> None:
    try:
        file.write_text(module, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be written: {error}", hint="Name a file in an existing folder."
        ) from None


def add_to(app: typer.Typer) -> None:
    app.command()(types)
