"""The names in CONTRIBUTING.md and the pages about the code exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "docs/guarantees.md")
PLACES = re.compile(r"`((?:common|services|migrations|tests|bench|docs|examples)/[\w./*-]*)(?: -k \w+)?`")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    named = set(PLACES.findall((ROOT / page).read_text()))
    assert named, "it names none in a way that this test reads"
    assert [name for name in sorted(named) if not any(ROOT.glob(name.rstrip("/")))] == []


def test_each_room_states_its_content_and_its_exclusions() -> None:
    rooms = [path for path in (ROOT / "common/penstock").iterdir() if (path / "__init__.py").exists()]
    assert rooms
    silent = [room.name for room in rooms if "Not here:" not in (room / "__init__.py").read_text()]
    assert silent == []
