"""The command `penstock completion`: the script with which a shell completes commands and options by TAB."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli import COMPLETING


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell, for a line such as `eval "$(penstock completion bash)"` in ~/.bashrc."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="penstock", complete_var=COMPLETING, shell=shell.value)
    sys.stdout.write(script + "\n")


def add_to(app: typer.Typer) -> None:
    app.command()(completion)
