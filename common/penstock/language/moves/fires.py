"""The statuses of a fire, and its legal moves."""

from __future__ import annotations

CREATED = "created"
"""It has an execution. A lost one is replaced, which is no move."""
QUEUED = "queued"
"""It waits until the run before it has ended (overlap: queue or replace)."""
SKIPPED = "skipped"
"""It has no execution, and `error` says why. A backfill can still start it."""
FAILED = "failed"
"""Its execution could not be started, or was lost too often. `error` says why; a backfill can try again."""

MOVES: dict[str, frozenset[str]] = {
    QUEUED: frozenset({CREATED, SKIPPED}),
    CREATED: frozenset({FAILED}),
    SKIPPED: frozenset({CREATED, QUEUED}),
    FAILED: frozenset({CREATED, QUEUED}),
}
