"""The rules of the house find what they are there to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house_rules import LONGEST, broken

# Put together, so that this file does not break the rules that it tests.
HOME = "/".join(["", "home", "someone", "penstock"])
INDEX = "-".join(["", "", "index", "url x"])


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("common/__init__.py", "", "shadow"),
        ("common/penstock/a.py", "import penstock_worker.main", "common imports the service"),
        ("services/penstock_worker/a.py", "from penstock_executor import x", "imports another service"),
        (
            "services/penstock_worker/a.py",
            "def f():\n    import penstock_executor",
            "imports another service",
        ),
        ("migrations/versions/a.py", "from tests.penstock.store.tables import x", "imports live code"),
        ("docs/a.md", f"cd {HOME}", "a path of one machine"),
        ("requirements.txt", "x @ https://example.com/x.whl", "an address"),
        ("docs/a.md", f"pip install {INDEX}", "a package index"),
        ("common/penstock/a.py", "\n" * (LONGEST + 1), "lines"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, path: str, text: str, found: str) -> None:
    lines = _broken(tmp_path, path, text)
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}:")
    assert found in lines[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("common/penstock/__init__.py", ""),
        ("services/penstock_worker/a.py", "from penstock_worker import x\nimport penstock"),
        ("tests/a.py", "import penstock_worker, penstock_executor"),
        ("migrations/versions/a.py", "import sqlalchemy"),
        ("docs/a.md", "see https://www.postgresql.org/docs/ and /usr/lib/postgresql"),
        ("requirements.txt", "httpx==0.28.1 \\\n    --hash=sha256:0000"),
        ("common/penstock/a.py", "\n" * LONGEST),
    ],
)
def test_what_keeps_the_rules_is_not_found(tmp_path: Path, path: str, text: str) -> None:
    assert _broken(tmp_path, path, text) == []


def _broken(root: Path, path: str, text: str) -> list[str]:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return list(broken(root, [path]))
