"""The site is whole: every page is in it, every link and anchor leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"https?://[^\"]+\"")


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list(tmp_path.rglob("*.html"))
    sources = list((ROOT / "docs").rglob("*.md"))
    assert len(pages) == len(sources) + 1  # 404.html
    foreign = [
        (page.name, found)
        for page in pages
        for found in LOADED.findall(page.read_text())
        if "canonical" not in found
    ]
    assert foreign == []
    assert (tmp_path / "search/search_index.json").exists()
