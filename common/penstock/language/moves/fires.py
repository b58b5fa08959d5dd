"""The statuses of a fire, and its legal moves."""

from __future__ import annotations

CREATED = "created"
"""The fire has an execution. Replacing a lost execution is not a move."""
QUEUED = "queued"
"""The fire waits until the run before it has ended (overlap: queue or replace)."""
SKIPPED = "skipped"
"""The fire has no execution, and `error` says why. A backfill can still start it."""
FAILED = "failed"
"""The fire's execution could not be started, or was lost too many times. `error` says why; a backfill can try again."""

MOVES: dict[str, frozenset[str]] = {
    QUEUED: frozenset({CREATED, SKIPPED}),
    CREATED: frozenset({FAILED}),
    SKIPPED: frozenset({CREATED, QUEUED}),
    FAILED: frozenset({CREATED, QUEUED}),
}
