"""Pages that are written from the code are up to date, and what they show was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from docs.written import errors
from docs.written.__main__ import ROOT, WRITTEN
from docs.written.expression_examples import FILTERS, FUNCTIONS, TESTS
from docs.written.python_examples import BEFORE, EXAMPLES
from penstock.cli.explain_texts import TEXTS
from penstock.errors import NotFound
from penstock.language.expressions import functions
from penstock.service.explain_errors import more_of


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_written_pages_match_the_code(file: Path) -> None:
    assert file.read_text() == WRITTEN[file](), "run: .venv/bin/python -m docs.written"


def test_every_filter_function_and_test_has_an_example() -> None:
    assert set(FILTERS) == set(functions.FILTERS)
    assert set(FUNCTIONS) == set(functions.GLOBALS)
    assert set(TESTS) == set(functions.TESTS)


def test_every_example_calls_its_function() -> None:
    assert [name for name, example in {**FILTERS, **FUNCTIONS, **TESTS}.items() if name not in example] == []


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if text.code])
def test_the_example_of_an_error_raises_it(name: str) -> None:
    assert type(errors.raised_by(TEXTS[name].code)).__name__ == name


def test_every_error_has_a_page_and_a_command_that_the_message_names() -> None:
    for error_class in errors.classes():
        assert more_of(error_class.__new__(error_class)) == f"penstock explain {error_class.__name__}"
        assert ROOT / f"docs/reference/errors/{error_class.__name__}.md" in WRITTEN
    assert more_of(type("Special", (NotFound,), {})("no such thing")) == "penstock explain NotFound"


def test_every_public_name_has_an_example() -> None:
    assert set(EXAMPLES) == set(penstock.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str) -> None:
    assert name in EXAMPLES[name] or f"@{name}" in EXAMPLES[name]
    exec(f"{BEFORE}\n{EXAMPLES[name]}", {"__name__": "example"})  # as a reader would type it
