"""The variables of the environment that Celery reads as options of its commands: `CELERY_WORKER_TIME_LIMIT` is `--time-limit` of
`celery worker`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_OF_BOTH = ("detach", "executable", "gid", "logfile", "loglevel", "pidfile", "scheduler", "uid", "umask")
_OF_WORKERS = (
    "autoscale", "beat", "concurrency", "disable_prefetch", "exclude_queues", "heartbeat_interval", "hostname", "include",
    "max_memory_per_child", "max_tasks_per_child", "optimization", "pool", "prefetch_multiplier", "purge", "queues",
    "soft_time_limit", "statedb", "task_events", "time_limit", "without_gossip", "without_heartbeat", "without_mingle",
)  # fmt: skip
_OF_BEAT = ("max_interval", "schedule")
_OPTIONS = {
    **{f"CELERY_WORKER_{name.upper()}": ("worker", name) for name in _OF_BOTH + _OF_WORKERS},
    "CELERY_WORKER_SCHEDULE_FILENAME": ("worker", "schedule"),
    **{f"CELERY_BEAT_{name.upper()}": ("beat", name) for name in _OF_BOTH + _OF_BEAT},
}
"""The part of the command and the option, by the name of the variable. Celery 5 makes the names of the options' names."""
_NAME = re.compile(r"(?<!\$)(?<!\$[{(])(?<![\w%-])(CELERY_(?:WORKER|BEAT)_[A-Z_]+)\b(.*)")
"""A pattern for a variable that a line gives. A line with `$` or `%` before the name reads the variable."""
_VALUE = re.compile(r"""["']?\s*(?:[:=]|,\s*["']?value["']?\s*[:=]|\s(?=\S))\s*(.*)""")
_VALUE_BELOW = re.compile(r"""\s*["']?value["']?\s*[:=]\s*(.*)""")
_COMMENT = re.compile(r"\s*(?:#|;|//|::|(?i:rem)\s)")


def option_of(variable: str) -> tuple[str, str] | None:
    """Return the part of the command, `worker` or `beat`, and the option that a variable gives; None for any other name."""
    if variable not in _OPTIONS:
        return None
    part, name = _OPTIONS[variable]
    return part, f"--{name.replace('_', '-')}"


def variables(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the line, the name and the value of each variable that a file gives. The value is empty where the
    line has none."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = _NAME.search(line)
        if match is None or match[1] not in _OPTIONS or _COMMENT.match(line):
            continue
        value = _VALUE.match(match[2])
        if value is None and number + 1 < len(lines):
            value = _VALUE_BELOW.match(lines[number + 1])
        words = re.sub(r"""["'{}\]]|,\s*$|\s#.*""", "", value[1]).split() if value is not None else []
        yield number + 1, match[1], words[0] if words else ""
