"""The states of a process (a worker or an executor), and its legal moves. A process that stops without open work is
deleted."""

from __future__ import annotations

ACTIVE = "active"
"""The process is alive, and takes work."""
CORDONED = "cordoned"
"""An operator cordoned the process (`penstock workers cordon`). It takes no more work, and finishes what it has."""
DRAINING = "draining"
"""The process is about to stop. It takes no more work, and may finish what it has."""
DEAD = "dead"
"""The process sent no heartbeat for too long, or its session ended, and its work was taken back. If it was only cut
off, it registers again."""

MOVES: dict[str, frozenset[str]] = {
    ACTIVE: frozenset({CORDONED, DRAINING, DEAD}),
    CORDONED: frozenset({ACTIVE, DRAINING, DEAD}),
    DRAINING: frozenset({DEAD}),
    DEAD: frozenset({ACTIVE}),
}
