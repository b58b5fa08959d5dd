"""The options of the commands that begin a chain of events and rules."""

from __future__ import annotations

from typing import Annotated

import typer

MaxDepth = Annotated[
    int | None,
    typer.Option(
        min=1, help="The maximum length of a chain: rules that trigger each other, one after another."
    ),
]
MaxDescendants = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The maximum number of executions that rules may start from it, also through chains of rules.",
    ),
]
