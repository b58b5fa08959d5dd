"""The counts of prose find what they are there to find, and limits only fall."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prose_counts
from tests.prose_counts import COUNTS, broken_limits, count, main, subject_faults

GOOD = '"""Rows of a table."""\n\n\ndef claim(ids):\n    """Claim the rows."""\n    rows = ids\n    return rows\n'
FAULTS = {
    "headless_docstrings": ("common/a.py", '"""Those of these that have ended."""\n'),
    "verbless_docstrings": ("common/a.py", 'def claim():\n    """The claimed rows."""\n'),
    "headless_options": ("services/a.py", 'Option("--limit", help="How many.")\n'),
    "glossary_words": ("docs/glossary.md", "| **lane** | A queue. |\n"),
    "long_sentences": ("services/a.py", f'"""Return {"a " * 26}row."""\n'),
    "headless_sql_headers": ("migrations/functions/a/b.sql", "-- What an execution waits for.\nselect 1;\n"),
    "vague_names": ("common/a.py", "found = 1\n"),
    "negated_nouns": ("common/a.py", 'raise Wrong(f"{text} is no route")  # there is no route\n'),
    "persons": ("common/a.py", "# Whoever waits is woken.\n"),
    "tests_of_persons": ("tests/test_a.py", f"def test_a_worker_{'who'}_died(): ...\n"),
}


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("name", COUNTS)
def test_count_finds_planted_fault(tmp_path: Path, name: str) -> None:
    write(tmp_path, "common/good.py", GOOD)
    assert set(count(tmp_path).values()) == {0}

    write(tmp_path, *FAULTS[name])

    assert count(tmp_path)[name] == 1


@pytest.mark.parametrize("part", prose_counts.BESIDE)
def test_docstrings_beside_the_product_count(tmp_path: Path, part: str) -> None:
    write(tmp_path, f"{part}/a.py", '"""What it costs."""\nfound = 1\n\n\ndef cost():\n    """The cost."""\n')

    counted = {name: number for name, number in count(tmp_path).items() if number}
    assert counted == dict.fromkeys(prose_counts.BESIDE[part], 1)


def test_limit_above_is_broken_and_only_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("# Head.\n" + "".join(f"{name} = 1\n" for name in COUNTS))
    monkeypatch.setattr(prose_counts, "LIMITS", limits)
    write(tmp_path, "common/a.py", "found = 1\nsaid = 2\n")

    assert [line.split()[1] for line in broken_limits(tmp_path)] == ["vague_names"]

    prose_counts._lower(tmp_path)

    assert limits.read_text().startswith("# Head.\n")
    assert prose_counts._limits() == dict.fromkeys(COUNTS, 0) | {"vague_names": 1}


@pytest.mark.parametrize(
    ("subject", "faults"),
    [
        ("store: claim rows in the order of their ids", 0),
        ("docs/durable: say when a task is a branch", 0),
        ("Claims rows in the order of their ids", 1),
        ("store: Claim rows", 1),
        ("store: claim rows; worker: beat once", 1),
        (f"store: claim {'a' * 60}", 1),
    ],
)
def test_subject_is_held_to_its_form(tmp_path: Path, subject: str, faults: int) -> None:
    assert len(list(subject_faults(subject))) == faults

    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nThe body.\n")

    assert main(["subject", str(message)]) == bool(faults)
