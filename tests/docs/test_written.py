"""Pages that are written from the code are up to date, and what they show was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from docs.written.__main__ import ROOT, WRITTEN
from docs.written.expression_examples import FILTERS, FUNCTIONS, TESTS
from docs.written.python_examples import BEFORE, EXAMPLES
from penstock.language.expressions import functions


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_is_written_says_what_the_code_says(file: Path) -> None:
    assert file.read_text() == WRITTEN[file](), "run: .venv/bin/python -m docs.written"


def test_every_filter_function_and_test_has_an_example() -> None:
    assert set(FILTERS) == set(functions.FILTERS)
    assert set(FUNCTIONS) == set(functions.GLOBALS)
    assert set(TESTS) == set(functions.TESTS)


def test_every_example_calls_what_it_is_an_example_of() -> None:
    assert [name for name, example in {**FILTERS, **FUNCTIONS, **TESTS}.items() if name not in example] == []


def test_every_public_name_has_an_example() -> None:
    assert set(EXAMPLES) == set(penstock.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str) -> None:
    assert name in EXAMPLES[name] or f"@{name}" in EXAMPLES[name]
    exec(f"{BEFORE}\n{EXAMPLES[name]}", {"__name__": "example"})  # as a reader would type it
