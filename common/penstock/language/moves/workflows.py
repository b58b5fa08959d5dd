"""The phases of a workflow's run, and its legal moves. They are of its own state (`head`); its execution is `running` all the
while, and moves as executions do. One that has not begun has no phase."""

from __future__ import annotations

RUNNING = "running"
"""Its tasks start and end."""
STOPPING = "stopping"
"""It was cancelled or timed out: nothing starts, and what is open is on its way out."""
EXITING = "exiting"
"""All its tasks have ended, and its exit task runs."""
ENDED = "ended"
"""It is over, and its execution final."""

MOVES: dict[str, frozenset[str]] = {
    RUNNING: frozenset({STOPPING, EXITING, ENDED}),
    STOPPING: frozenset({EXITING, ENDED}),
    EXITING: frozenset({ENDED}),
}
