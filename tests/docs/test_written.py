"""Pages that are written from the code are up to date, and what they show was tried."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import penstock
import penstock.testing
from docs.written import errors
from docs.written.__main__ import ROOT, WRITTEN
from docs.written.expression_examples import FILTERS, FUNCTIONS, TESTS
from docs.written.python_examples import EXAMPLES, RETURNED_EXAMPLES, TESTING_EXAMPLES
from penstock import workflow
from penstock.cli.explain_texts import TEXTS
from penstock.errors import NotFound
from penstock.language.expressions import functions
from penstock.language.workflows import Workflow
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


def public_names() -> dict[str, tuple[str, Any]]:
    """Return the public names that have pages, each with the module that exports it and its value."""
    exported = {name: ("penstock", getattr(penstock, name)) for name in penstock.__all__}
    return exported | {
        name: ("penstock.testing", getattr(penstock.testing, name)) for name in penstock.testing.__all__
    }


def parameters_of(value: Any) -> list[str]:
    """Return the names of the parameters by which a caller calls a function or a method."""
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("name", public_names())
def test_public_name_has_page_with_signature_and_example(name: str) -> None:
    module, value = public_names()[name]
    kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "value"
    path = f"reference/python/{kind}-{name.lower()}.md"
    text = (ROOT / "docs" / path).read_text()
    assert text.startswith(f"# {kind} `{name}`\n\n```python\nfrom {module} import {name}\n```\n")
    assert "\n## Example\n" in text
    assert path.removeprefix("reference/") in (ROOT / "docs/reference/python.md").read_text()
    assert f"- {path}\n" in (ROOT / "mkdocs.yml").read_text()
    if kind == "value":
        assert f"{name} = " in text
    elif kind == "function":
        signature = text.split("```python\n")[2].split("```")[0]
        assert signature.removeprefix("await ").startswith(f"{name}(")
        assert set(parameters_of(value)) <= set(re.findall(r"\w+", signature))
        assert (inspect.getdoc(value) or "-").splitlines()[0] in text
    elif not issubclass(value, BaseModel):
        members = [
            member
            for member, function in inspect.getmembers(value, inspect.isroutine)
            if not member.startswith("_") and function.__doc__
            if getattr(function, "__module__", None) and function.__module__.startswith("penstock")
        ]
        assert [member for member in members if f"\n## `{member}`\n" not in text] == []
    elif value is not penstock.Settings:
        assert [
            name for name, field in value.model_fields.items() if f"| `{field.alias or name}` |" not in text
        ] == []


def test_each_page_links_the_errors_that_it_names() -> None:
    for file in (ROOT / "docs/reference/python").glob("*.md"):
        text = file.read_text()
        for sentence in re.findall(r"Raises ([^.]*)\.", text):
            for error in re.findall(r"[A-Z]\w+", sentence):
                if ROOT / f"docs/reference/errors/{error}.md" in WRITTEN:
                    assert f"[`{error}`](../errors/{error}.md)" in text, (file.name, error)


def test_module_for_packages_has_section_of_each_name() -> None:
    """The rows of the page are read here, and not by what writes the pages."""
    rows = re.findall(
        r"^\| `(penstock[\w.]+)` \| (.+?) \|", (ROOT / "docs/extending.md").read_text(), re.MULTILINE
    )
    assert len(rows) >= 10
    for module, names in rows:
        text = (ROOT / f"docs/reference/python/{module}.md").read_text()
        loaded = importlib.import_module(module)
        expected = re.findall(r"`(\w+)`", names)
        if names == "all":
            expected = getattr(loaded, "__all__", []) or [
                name
                for name, value in vars(loaded).items()
                if not name.startswith("_") and getattr(value, "__module__", "") == module
            ]
        for name in expected:
            section = re.search(rf"^## (class|function|value) `{name}`$", text, re.MULTILINE)
            assert section or ROOT / f"docs/reference/errors/{name}.md" in WRITTEN, (module, name)


def test_testing_page_has_each_member_of_a_durable_run() -> None:
    page = (ROOT / "docs/testing.md").read_text()
    run = penstock.testing.DurableRun()
    members = [name for name in dir(run) if not name.startswith("_") and name != "crash_at"]
    assert [name for name in members if f"`run.{name}" not in page] == []


def test_every_public_name_has_an_example() -> None:
    assert set(EXAMPLES) == set(penstock.__all__)
    assert set(TESTING_EXAMPLES) == set(penstock.testing.__all__)


@pytest.mark.parametrize("name", [*EXAMPLES, *TESTING_EXAMPLES, *RETURNED_EXAMPLES])
def test_an_example_runs(name: str) -> None:
    """The code is taken from the page of the name, as a reader would."""
    files = (ROOT / "docs/reference/python").glob(f"*-{name.lower()}.md")
    [text] = [
        text for file in files if f" `{name}`\n" in (text := file.read_text()).partition("\n")[0] + "\n"
    ]
    example = text.rpartition("## Example\n")[2].strip().removeprefix("```python\n").removesuffix("\n```")
    if name not in RETURNED_EXAMPLES:
        assert re.search(rf"\b{name}\b", example)
    exec(example, {"__name__": "example"})


def test_docstring_of_workflow_names_each_option() -> None:
    options = set(Workflow.model_fields) - {"format", "ref", "tasks"}
    assert {name for name in options if f"`{name}`" not in str(workflow.__doc__)} == set()
