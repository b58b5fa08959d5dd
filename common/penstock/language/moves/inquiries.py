"""The statuses of an inquiry, and its legal moves."""

from __future__ import annotations

CREATED = "created"
"""The execution waits for the answer."""
RESPONDED = "responded"
"""The inquiry was answered, by a person or by its default. The attempt that continues may ask again, in the same row.
"""
TIMEOUT = "timeout"
"""No answer came in time and the inquiry has no default, or its execution timed out."""
CANCELLED = "cancelled"
"""The execution ended before an answer came."""

MOVES: dict[str, frozenset[str]] = {
    CREATED: frozenset({RESPONDED, TIMEOUT, CANCELLED}),
    RESPONDED: frozenset({CREATED}),
}
