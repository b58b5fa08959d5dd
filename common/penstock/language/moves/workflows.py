"""The phases of a workflow's run, and its legal moves. The phase is part of the workflow's own state (`head`). The
status of its execution is `running` in all phases but the last. A workflow that has not begun has no phase."""

from __future__ import annotations

RUNNING = "running"
"""The tasks of the workflow start and end."""
STOPPING = "stopping"
"""No task starts. The workflow was cancelled or timed out, and open executions are being cancelled. Or it has `fail_fast`
and a failure that no task handles, and open executions end by themselves."""
EXITING = "exiting"
"""All tasks have ended, and the exit task runs."""
ENDED = "ended"
"""The workflow has ended, and its execution is final."""

MOVES: dict[str, frozenset[str]] = {
    RUNNING: frozenset({STOPPING, EXITING, ENDED}),
    STOPPING: frozenset({EXITING, ENDED}),
    EXITING: frozenset({ENDED}),
}
