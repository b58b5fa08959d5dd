"""The options of the commands that begin a chain of events and rules."""

from __future__ import annotations

from typing import Annotated

import typer

MaxDepth = Annotated[
    int | None,
    typer.Option(
        min=1, help="The maximum number of rules that may trigger each other in a chain because of it."
    ),
]
MaxDescendants = Annotated[
    int | None,
    typer.Option(min=1, help="The maximum number of executions that rules may start because of it."),
]
