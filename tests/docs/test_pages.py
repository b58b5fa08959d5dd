"""Every page that shows how to do something does it: its files load, its commands print what it says."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.docs.fences import parts
from tests.docs.reader import Reader
from tests.flows.installation import AS_USED, Installation

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    DOCS / "tutorial.md",
    DOCS / "api.md",
    DOCS / "extending.md",
    *sorted((DOCS / "how-to").glob("*.md")),
    *sorted((DOCS / "coming-from").glob("*.md")),
    DOCS / "reference/actions.md",
    DOCS / "reference/client.md",
    DOCS / "reference/errors.md",
    DOCS / "reference/packs.md",
]


@pytest.fixture
async def house(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Installation]:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    monkeypatch.setenv(
        "PENSTOCK_SECRETS_KEY", b64encode(bytes(32)).decode()
    )  # as a reader of the page would export it
    monkeypatch.setenv("PENSTOCK_RESULT_STORE", tmp_path.as_uri())
    async with Installation(database, None, **AS_USED) as installation:
        yield installation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
async def test_the_steps_of_a_page_work_as_it_shows(
    page: Path, house: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # loading a file puts its folder there
    await Reader(house, tmp_path, monkeypatch.setenv).read(list(parts(page)))
