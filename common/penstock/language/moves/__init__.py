"""The statuses and the legal moves between them, declared only here, in a module for each subject.

The database holds the same table (`legal_move`) and refuses anything else; `docs/lifecycle.md` is drawn from it; a
test compares the three. The package itself has the
names for executions. The other subjects are in their modules.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.language.moves import enforcements, executions, fires, inquiries, processes, workflows
from penstock.language.moves.executions import (
    ABANDONED,
    BAD,
    CANCELING,
    CANCELLED,
    COMPLETED,
    FAILED,
    FINAL,
    MEANINGS,
    MOVES,
    QUEUED,
    REQUESTED,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    STATUSES,
    TIMEOUT,
    WAITING,
)

__all__ = [
    "ABANDONED",
    "BAD",
    "CANCELING",
    "CANCELLED",
    "COMPLETED",
    "FAILED",
    "FINAL",
    "MEANINGS",
    "MOVES",
    "QUEUED",
    "REQUESTED",
    "RUNNING",
    "SCHEDULED",
    "SKIPPED",
    "STATUSES",
    "SUBJECTS",
    "TIMEOUT",
    "WAITING",
    "statuses",
]

SUBJECTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "execution": executions.MOVES,
    "enforcement": enforcements.MOVES,
    "fire": fires.MOVES,
    "inquiry": inquiries.MOVES,
    "process": processes.MOVES,
    "workflow": workflows.MOVES,
}
"""The legal moves of each subject, from each status to a set of statuses. Subjects are named as in `legal_move`."""


def statuses(subject: str) -> tuple[str, ...]:
    """Return all statuses of a subject, with the final ones last."""
    moves = SUBJECTS[subject]
    return (*moves, *sorted(frozenset[str]().union(*moves.values()).difference(moves)))
