"""The options of the commands that begin a chain of events and rules."""

from __future__ import annotations

from typing import Annotated

import typer

MaxDepth = Annotated[
    int | None,
    typer.Option(min=1, help="The number of rules that may follow from it one after the other."),
]
MaxDescendants = Annotated[
    int | None, typer.Option(min=1, help="The number of executions that rules may start after it.")
]
