"""A plugin of pytest: the quickest tests first, by what mutmut measured, since a mutant is dead once one fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.setrecursionlimit(3 * sys.getrecursionlimit())
"""A call of a function that mutmut watches has three frames. So code that recurses reaches as deep as without it."""
MEASURED = Path("mutmut-stats.json")
"""In the folder that mutmut runs the tests in."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    yield
    if MEASURED.exists():
        seconds = json.loads(MEASURED.read_text())["duration_by_test"]
        items.sort(key=lambda item: float(seconds.get(item.nodeid, 0.0)))
