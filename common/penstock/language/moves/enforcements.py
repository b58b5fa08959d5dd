"""The statuses of an enforcement, and its legal moves. It is deleted if its rule, tried again, no longer matches."""

from __future__ import annotations

CREATED = "created"
"""Its execution is to be made anew, in the same transaction: it failed, or no trace of its execution was found."""
EXECUTED = "executed"
"""It has an execution. `penstock repair` makes one of which there is no trace once more."""
FAILED = "failed"
"""Its condition or its parameters raised an error, which it keeps; `penstock rules rerun` takes it up again."""

MOVES: dict[str, frozenset[str]] = {
    CREATED: frozenset({EXECUTED}),
    EXECUTED: frozenset({CREATED}),
    FAILED: frozenset({CREATED}),
}
