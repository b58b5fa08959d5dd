"""The route of each task in `task_routes`, found as Celery's router finds it: exact names first, then patterns in order."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase


def deciding_key(keys: Collection[str], task: str) -> str | None:
    """Return the key of the route that Celery takes for a task; None where no key fits. Only a key with a star is a pattern."""
    if task in keys:
        return task
    return next((key for key in keys if "*" in key and fnmatchcase(task, key)), None)
