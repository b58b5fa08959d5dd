"""Writes what can be read off the code into docs/reference: `.venv/bin/python -m docs.written`. A test sees that it was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.written import actions, cli, errors, expressions, logs, packs, python, traces

REFERENCE = Path(__file__).parents[1] / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "actions.md": actions.page,
    "cli.md": cli.page,
    "errors.md": errors.page,
    "expressions.md": expressions.page,
    "logs.md": logs.page,
    "packs.md": packs.page,
    "python.md": python.page,
    "traces.md": traces.page,
}


def write() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    write()
