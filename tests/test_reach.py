"""The counts of files of one story count what they are there to count, and their limits only fall."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import reach


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(
        tmp_path,
        "migrations/functions/a/enforce_rules.sql",
        "-- As last ().\nperform first ($1); select count(*);",
    )
    write(tmp_path, "migrations/functions/a/first.sql", "perform second(1), enforce_rules(2);")
    write(tmp_path, "migrations/functions/b/second.sql", "perform second(1);")
    write(tmp_path, "migrations/functions/b/last.sql", "perform first(1);")
    write(
        tmp_path,
        "docs/walkthrough.md",
        "`common/a.py` `f` and `migrations/functions/a/first.sql`, again `common/a.py`. `common/room/` `tests/b.py`",
    )
    return tmp_path


def test_functions_are_counted_through_others_once(tree: Path) -> None:
    assert reach.functions_of_enforce_rules(tree) == ["first", "second"]


def test_product_files_of_walkthrough_are_counted_once(tree: Path) -> None:
    assert reach.files_of_walkthrough(tree) == ["common/a.py", "migrations/functions/a/first.sql"]


def test_limit_is_broken_above_and_only_falls(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = tree / "limits.toml"
    monkeypatch.setattr(reach, "LIMITS", limits)
    limits.write_text("# Head.\nfunctions_of_enforce_rules = 1\nfiles_of_walkthrough = 3\n")
    assert [sentence.split()[1] for sentence in reach.broken_reach(tree)] == ["functions_of_enforce_rules"]
    reach._lower(tree)
    assert limits.read_text() == "# Head.\nfunctions_of_enforce_rules = 1\nfiles_of_walkthrough = 2\n"
