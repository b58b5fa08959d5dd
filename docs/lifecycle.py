"""Writes docs/lifecycle.md from penstock.language.moves: `.venv/bin/python docs/lifecycle.py`. A test sees that it was done."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

from penstock.language import moves

PAGE = Path(__file__).with_suffix(".md")

HEAD = """\
# The life of an execution

This page is written by `docs/lifecycle.py` from `common/penstock/language/moves.py`. The database holds the same moves in the
table `legal_move` and refuses any other: an `UPDATE` that makes one fails with the error code `PN001`, whoever sends it.
Each move is written to the history with its instant, the attempt, who made it and why: `penstock history ID`.
"""

DRAWN = "Not drawn: every open status may also end in one of the other final ones, as the table says."

FOOT = """\
Final means that no attempt will follow; no final status ever changes. Whether a failed attempt is tried again is
decided in the transaction that ends the attempt, so an execution that will be retried was never final in between:
it goes from `running` back to `requested`, with an instant before which it does not start.

An attempt is counted when a worker claims it, so a crash uses one up. `max_attempts` bounds failures,
`max_recoveries` bounds losses (3, unless the action says otherwise).

[Contributing](../CONTRIBUTING.md#adding) says how a move or a status is added.
"""

MEANING = {
    moves.COMPLETED: "Its result is stored.",
    moves.FAILED: "Its last attempt raised an error, or it could not be started.",
    moves.TIMEOUT: "An attempt, or all of it, took longer than it may; or it did not start in time.",
    moves.CANCELLED: "Somebody asked, or a limit refused it.",
    moves.SKIPPED: "A task of a workflow that had no reason to run, or that an operator skipped.",
}


def documented() -> dict[str, str]:
    """Each status and what is said below it in penstock.language.moves, or here."""
    found = dict(MEANING)
    assert moves.__file__ is not None
    body = ast.parse(Path(moves.__file__).read_text()).body
    for statement, after in itertools.pairwise(body):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[str(statement.value.value)] = " ".join(str(after.value.value).split())
    return found


def page() -> str:
    """The whole page. Raises KeyError for a status that nobody has described."""
    meaning = documented()
    lines = [HEAD, "```mermaid", "stateDiagram-v2", "    [*] --> requested"]
    drawn = {*moves.MOVES, moves.COMPLETED}
    lines += [
        f"    {old} --> {new}" for old in moves.MOVES for new in ordered(moves.MOVES[old]) if new in drawn
    ]
    lines += [
        "    completed --> [*]",
        "```",
        "",
        DRAWN,
        "",
        "| status | means | may become |",
        "|---|---|---|",
    ]
    for status in moves.STATUSES:
        becomes = (
            ", ".join(f"`{new}`" for new in ordered(moves.MOVES.get(status, ()))) or "nothing: it is final"
        )
        lines.append(f"| `{status}` | {meaning[status]} | {becomes} |")
    return "\n".join([*lines, "", FOOT])


def ordered(statuses: frozenset[str] | tuple[str, ...]) -> list[str]:
    return [status for status in moves.STATUSES if status in statuses]


if __name__ == "__main__":
    PAGE.write_text(page())
