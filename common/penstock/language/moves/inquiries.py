"""The statuses of an inquiry, and its legal moves."""

from __future__ import annotations

CREATED = "created"
"""Its execution waits for the answer."""
RESPONDED = "responded"
"""It was answered, by somebody or by its default. An attempt that goes on with the answer may ask again, in the same row."""
TIMEOUT = "timeout"
"""Nobody answered in time, and it has no default; or its execution took too long in all."""
CANCELLED = "cancelled"
"""Its execution ended otherwise before somebody answered."""

MOVES: dict[str, frozenset[str]] = {
    CREATED: frozenset({RESPONDED, TIMEOUT, CANCELLED}),
    RESPONDED: frozenset({CREATED}),
}
