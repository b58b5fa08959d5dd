"""The files besides the Python code of an application that concern its tasks: commands that start Celery, and fixtures
with rows of django-celery-beat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_SUFFIXES = frozenset(
    {"", ".cfg", ".conf", ".env", ".ini", ".j2", ".json", ".service", ".sh", ".toml", ".tpl", ".yaml", ".yml"}
)
_LEFT_OUT = frozenset({".git", ".tox", ".venv", "node_modules", "site-packages", "test", "tests", "docs"})
_MAX_BYTES = 1_000_000
_COMMAND = re.compile(r"""\bcelery\b["',\s].*?\b(?:worker|beat|multi)\b.*""")
_PROSE = re.compile(r"\s*(?:#|;|(?:Description|Documentation)\s*=)")
"""A pattern for the lines of a settings file or a systemd unit that run nothing."""
_ROWS = re.compile(r"""["']?model["']?\s*:\s*["']?django_celery_beat\.(\w+)""")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[A-Za-z])\b")
_OPTIONS: Mapping[str, str] = {
    "-Q": "`penstock worker --routes`",
    "--queues": "`penstock worker --routes`",
    "-c": "`penstock worker --concurrency`",
    "--concurrency": "`penstock worker --concurrency`",
    "-B": "schedules need nothing beside the executor",
    "--beat": "schedules need nothing beside the executor",
    "--time-limit": "`timeout` and `executor: process` of each action that says none itself",
    "--soft-time-limit": "`timeout` of each action that says none itself",
    "-P": "`executor` of the actions",
    "--pool": "`executor` of the actions",
    "-S": "the schedules of a database are not read",
    "--scheduler": "the schedules of a database are not read",
}


def other_files(folder: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yield a gap for each command and for each file of rows: file, line, subject, work by hand."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if _LEFT_OUT & set(name.parts) or path.suffix not in _SUFFIXES or not path.is_file():
            continue
        if path.stat().st_size > _MAX_BYTES:
            continue
        text = path.read_text(errors="replace")
        rows = _ROWS.search(text)
        if rows is not None:
            yield (str(name), text.count("\n", 0, rows.start()) + 1, f"rows of the table {rows[1]} of django-celery-beat",
                   "Write them as schedules: files of rows are not read.")  # fmt: skip
        for number, line in enumerate(text.splitlines(), 1):
            if _PROSE.match(line) or (command := _COMMAND.search(line)) is None:
                continue
            named = [option for option in dict.fromkeys(_OPTION.findall(command[0])) if option in _OPTIONS]
            hints = "; ".join(f"{option} is {_OPTIONS[option]}" for option in named)
            start = "Start `penstock worker` and `penstock executor`."
            by_hand = f"{start} There, {hints}." if hints else start
            yield str(name), number, f"the command {command[0]}", by_hand
