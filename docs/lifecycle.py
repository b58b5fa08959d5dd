"""Writes docs/lifecycle.md from penstock.language.moves: `.venv/bin/python docs/lifecycle.py`. A test sees that it was done."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from penstock.language import moves
from penstock.language.moves import enforcements, executions, fires, inquiries, processes, workflows

PAGE = Path(__file__).with_suffix(".md")

HEAD = """\
# The life of an execution

This page is written by `docs/lifecycle.py` from `common/penstock/language/moves/`. The database holds the same moves in the
table `legal_move` and refuses any other: an `UPDATE` that makes one fails with the error code `PN001`, whoever sends it.
Each move of an execution is written to the history with its instant, the attempt, who made it and why: `penstock history ID`.
What else has a status [moves as strictly](#what-else-moves), and has no history.
"""

DRAWN = "Not drawn: every open status may also end in one of the other final ones, as the table says."

FOOT = """\
Final means that no attempt will follow; no final status ever changes. Whether a failed attempt is tried again is
decided in the transaction that ends the attempt, so an execution that will be retried was never final in between:
it goes from `running` back to `requested`, with an instant before which it does not start.

An attempt is counted when a worker claims it, so a crash uses one up. `max_attempts` bounds failures,
`max_recoveries` bounds losses (3, unless the action says otherwise).

[Contributing](../CONTRIBUTING.md#adding) says how a move or a status is added.

# What else moves
"""

OTHERS: Mapping[str, tuple[str, ModuleType]] = {
    "enforcement": ("An enforcement: a rule matched an event", enforcements),
    "fire": ("A fire of a schedule", fires),
    "inquiry": ("An inquiry", inquiries),
    "process": ("A worker or an executor", processes),
    "workflow": ("The run of a workflow", workflows),
}
"""By subject: the title of its part, and the module that says what its statuses mean."""


def documented(module: ModuleType) -> dict[str, str]:
    """Each status and what is said below it in this module."""
    found = {}
    assert module.__file__ is not None
    body = ast.parse(Path(module.__file__).read_text()).body
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
    """Return the whole page. Raises KeyError for a status without a description, and for a subject that has no part."""
    drawn = {*moves.MOVES, moves.COMPLETED}
    arrows = [(old, new) for old, new in arrows_of("execution") if new in drawn]
    lines = [HEAD, *diagram([moves.REQUESTED], arrows, [moves.COMPLETED]), "", DRAWN, ""]
    lines += [*table("execution", executions), "", FOOT]
    for subject in moves.SUBJECTS:
        if subject != "execution":
            lines += part(subject)
    return "\n".join(lines)


def part(subject: str) -> Iterator[str]:
    title, module = OTHERS[subject]
    arrows = list(arrows_of(subject))
    yield from (f"## {title}", "")
    yield from diagram([], arrows, [])
    yield ""
    yield from table(subject, module)
    yield ""


def diagram(first: list[str], arrows: list[tuple[str, str]], last: list[str]) -> Iterator[str]:
    yield from ("```mermaid", "stateDiagram-v2")
    yield from (f"    [*] --> {status}" for status in first)
    yield from (f"    {old} --> {new}" for old, new in arrows)
    yield from (f"    {status} --> [*]" for status in last)
    yield "```"


def table(subject: str, module: ModuleType) -> Iterator[str]:
    meaning = documented(module)
    if subject == "execution":
        shared = moves.MEANINGS
        meaning = {
            status: f"{shared[status][:1].upper()}{shared[status][1:]}. {detail}"
            for status, detail in meaning.items()
        }
    yield from ("| status | means | may become |", "|---|---|---|")
    for status in moves.statuses(subject):
        becomes = ", ".join(f"`{new}`" for old, new in arrows_of(subject) if old == status)
        yield f"| `{status}` | {meaning[status]} | {becomes or 'nothing: it is final'} |"


def arrows_of(subject: str) -> Iterator[tuple[str, str]]:
    declared = moves.SUBJECTS[subject]
    for old in declared:
        yield from ((old, new) for new in moves.statuses(subject) if new in declared[old])


if __name__ == "__main__":
    PAGE.write_text(page())
