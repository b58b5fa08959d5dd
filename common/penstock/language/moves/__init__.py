"""Statuses and the legal moves between them: declared here once, and nowhere else, a module for each subject.

The database holds the same table (`legal_move`) and refuses anything else; `docs/lifecycle.md` is drawn from it;
a test holds the three together. The names of this package are those of executions.
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
"""By the names that `legal_move` has for what moves: from each status to which others."""


def statuses(subject: str) -> tuple[str, ...]:
    """All of a subject, those that nothing follows last."""
    moves = SUBJECTS[subject]
    return (*moves, *sorted(frozenset[str]().union(*moves.values()).difference(moves)))
