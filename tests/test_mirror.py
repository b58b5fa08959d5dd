"""The share of modules with a test of their name counts what it is there to count, and its limit only rises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mirror


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_share_counts_tests_in_the_mirrored_folder_alone(tmp_path: Path) -> None:
    write(
        tmp_path, "common/penstock/a/__init__.py", "common/penstock/a/b.py", "services/penstock_worker/c.py"
    )
    write(tmp_path, "tests/penstock/test_b.py", "tests/penstock_worker/test_d.py")
    assert mirror.percent(tmp_path) == 0

    write(tmp_path, "tests/penstock/a/test_b.py")
    assert mirror.percent(tmp_path) == 50

    write(tmp_path, "tests/penstock_worker/test_c.py")
    assert mirror.percent(tmp_path) == 100

    write(tmp_path, "extras/penstock-import/setup.py", "extras/penstock-import/penstock_import/d.py")
    assert mirror.percent(tmp_path) == 66

    write(tmp_path, "tests/penstock_import/test_d.py")
    assert mirror.percent(tmp_path) == 100


def test_limit_is_broken_below_and_only_rises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "limit.toml"
    limit.write_text("# Head.\npercent = 50\n")
    monkeypatch.setattr(mirror, "LIMIT", limit)
    write(tmp_path, "common/penstock/a.py")

    assert len(list(mirror.broken_limit(tmp_path))) == 1
    mirror._raise(tmp_path)
    assert limit.read_text() == "# Head.\npercent = 50\n"

    write(tmp_path, "tests/penstock/test_a.py")

    assert list(mirror.broken_limit(tmp_path)) == []
    mirror._raise(tmp_path)
    assert limit.read_text() == "# Head.\npercent = 100\n"
