"""Writes what can be read off the code, into docs/reference and the package: `.venv/bin/python -m docs.written`. A test sees that it
was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.written import (
    actions,
    bounds,
    cli,
    errors,
    expressions,
    http,
    logs,
    metrics,
    packs,
    python,
    settings,
    system_events,
    traces,
    yaml_schemas,
)

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
SHIPPED = ROOT / "common/penstock/language/yaml_schemas"

PAGES: Mapping[str, Callable[[], str]] = {
    "actions.md": actions.page,
    "bounds.md": bounds.page,
    "cli.md": cli.page,
    "errors.md": errors.page,
    "expressions.md": expressions.page,
    "http.md": http.page,
    "logs.md": logs.page,
    "metrics.md": metrics.page,
    "packs.md": packs.page,
    "python.md": python.page,
    "system-events.md": system_events.page,
    "traces.md": traces.page,
}
WRITTEN: Mapping[Path, Callable[[], str]] = {
    **{REFERENCE / name: page for name, page in PAGES.items()},
    **{REFERENCE / name: page for name, page in errors.PAGES.items()},
    **{REFERENCE / "python" / name: page for name, page in python.PAGES.items()},
    ROOT / "docs/configuration.md": settings.page,
    ROOT / "common/penstock/cli/command_texts.json": cli.command_texts,
    **{SHIPPED / name: text for name, text in yaml_schemas.FILES.items()},
}
"""Each file, and what makes its text."""


def write() -> None:
    for file, text in WRITTEN.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text())


if __name__ == "__main__":
    write()
