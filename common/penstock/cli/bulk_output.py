"""The output of bulk commands: the outcome for each item or their number, and the reasons why items were left
unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.output import complain, err, json_line, out
from penstock.client.bulk import BulkOutcome, Tally

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be changed.")]
SHOWN = 10
"""The maximum number of reasons to print."""


def show(outcomes: Iterable[BulkOutcome], done: str, *, each: bool, json: bool) -> None:
    """Print each outcome, or else the number of successful ones with the word `done`, and the reasons of the others. Exit with
    code 1 if items were left unchanged."""
    counted = Tally()
    for outcome in outcomes:
        counted.add(outcome)
        if not each:
            continue
        if outcome.error is not None:
            complain(outcome.error)
        elif json:
            json_line({"id": outcome.id, "done": outcome.said})
        else:
            out.print(f"{outcome.id} {done}: {escape(str(outcome.said))}")
    refusals = sorted(counted.refused.items(), key=lambda item: -item[1].count)
    if json and not each:
        refused = [{"count": r.count, "error": why, "example": r.example} for why, r in refusals]
        json_line({"done": counted.done, "refused": refused})
    elif not each:
        out.print(f"{counted.done:,} {done}.")
        for why, refusal in refusals[:SHOWN]:
            err.print(
                f"[red]{refusal.count:,} left unchanged:[/red] {escape(why)} (such as {refusal.example})"
            )
            if refusal.error.hint:
                err.print(f"[dim]hint:[/dim]  {escape(refusal.error.hint)}")
        if len(refusals) > SHOWN:
            err.print(
                f"[dim]More were left unchanged for {len(refusals) - SHOWN} other reasons. --json lists all.[/dim]"
            )
    if refusals:
        raise typer.Exit(1)
