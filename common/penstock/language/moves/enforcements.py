"""The statuses of an enforcement, and its legal moves. An enforcement is deleted if its rule is evaluated again and no
longer matches."""

from __future__ import annotations

CREATED = "created"
"""The execution is about to be created again, in the same transaction: the enforcement had failed, or its execution
was lost."""
EXECUTED = "executed"
"""The enforcement has an execution. `penstock repair` creates a lost one again."""
FAILED = "failed"
"""The condition or the parameters raised an error, which is stored. `penstock rules rerun` evaluates the rule again."""

MOVES: dict[str, frozenset[str]] = {
    CREATED: frozenset({EXECUTED}),
    EXECUTED: frozenset({CREATED}),
    FAILED: frozenset({CREATED}),
}
