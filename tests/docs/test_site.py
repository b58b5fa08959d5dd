"""The site is whole: every page is in it, every link and anchor leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import chromium

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"https?://[^\"]+\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built strictly: every warning is an error, but not with --quiet."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_index_links_each_how_to_once() -> None:
    index = (ROOT / "docs/index.md").read_text()
    links = re.findall(r"\]\((how-to/[\w-]+\.md)\)", index)
    assert sorted(links) == sorted(f"how-to/{path.name}" for path in (ROOT / "docs/how-to").glob("*.md"))


def test_readme_leads_to_the_list_of_how_tos() -> None:
    assert "\n## I want to\n" in (ROOT / "docs/index.md").read_text()
    assert "(docs/index.md#i-want-to)" in (ROOT / "README.md").read_text()


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    sources = list((ROOT / "docs").rglob("*.md"))
    assert len(pages) == len(sources) + 1  # 404.html
    foreign = [
        (page.name, found)
        for page in pages
        for found in LOADED.findall(page.read_text())
        if "canonical" not in found
    ]
    assert foreign == []


async def test_search_works_where_the_site_is_read_from_a_folder(site: Path) -> None:
    async with chromium.started() as browser:
        page = await browser.new_page()
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        await page.goto((site / "how-to/approvals.html").as_uri())
        await page.get_by_role("textbox", name="Search").fill("dead letters")
        found = page.locator(".md-search-result__link", has_text="Dead letters").first
        await found.click(timeout=60_000)
        await page.wait_for_url("**/dead-letters.html*")
        assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []
