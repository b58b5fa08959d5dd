"""The states of a process, a worker or an executor, and its legal moves. One that leaves with nothing in hand is deleted."""

from __future__ import annotations

ACTIVE = "active"
"""It lives, and takes work."""
CORDONED = "cordoned"
"""An operator told it to take no more work (`penstock workers cordon`); what it has goes on."""
DRAINING = "draining"
"""It is about to stop: it takes no more work, and what it has may still end."""
DEAD = "dead"
"""It was not heard for too long, or its session ended: what it had was taken back. One that was only cut off registers again."""

MOVES: dict[str, frozenset[str]] = {
    ACTIVE: frozenset({CORDONED, DRAINING, DEAD}),
    CORDONED: frozenset({ACTIVE, DRAINING, DEAD}),
    DRAINING: frozenset({DEAD}),
    DEAD: frozenset({ACTIVE}),
}
