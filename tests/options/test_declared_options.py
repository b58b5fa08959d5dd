"""Every option of declarations through YAML and Python, `apply` and `dev`, up to what runs by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from penstock.errors import PenstockError
from penstock.language.loading import Definitions
from tests.flows.installation import Installation
from tests.options.applying import refused
from tests.options.declared_options import SCHEMA, Option, branches, options
from tests.options.declaring import in_python, in_yaml, pack, prepared
from tests.options.odd_values import ODD, bounds, distinct, fault

IN_CODE = ("function", "tasks", "workflow")
"""Options of YAML that are code in Python."""
Case = tuple[Option, Any, str]
"""An option, a value, and the name of the declaration that has it."""


@cache
def cases() -> tuple[Case, ...]:
    """Return each option with a legal value and each bound, and once an option of a model with all odd values."""
    listed: list[Case] = []
    models = set()
    for option in options():
        values = [option.legal()] if option.has_legal_value else []
        for branch in branches(option.schema):
            values += bounds(branch)
        model = (*option.path[-2:], str(option.schema))
        if model not in models:
            values += ODD
        models.add(model)
        listed += [(option, value, "") for value in distinct(tuple(values))]
    return tuple((option, value, f"n{n}") for n, (option, value, _) in enumerate(listed))


def accepted(door: Callable[[Case], Definitions]) -> Iterator[tuple[Case, Definitions | PenstockError]]:
    """Push every case through a door. Fails with every outcome that is neither definitions nor a typed error with a hint."""
    faults = []
    for case in cases():
        try:
            yield case, door(case)
        except Exception as error:
            listed = fault(error, f"{case[0]} = {str(case[1])[:60]!r}")
            if listed:
                faults.append(listed)
            elif isinstance(error, PenstockError):
                yield case, error
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_yaml_and_apply_answer_every_value(house: Installation, tmp_path: Path) -> None:
    """Apply what a file may say: a database takes it as well, or refuses it with a hint. Few values are refused that late."""
    folder = prepared(tmp_path)
    outcomes = list(accepted(lambda case: in_yaml(folder, pack(case[0], case[2], case[0].entry(case[1])))))
    check(iter(outcomes))
    definitions = [
        (f"{case[0]} = {str(case[1])[:60]!r}", outcome)
        for case, outcome in outcomes
        if isinstance(outcome, Definitions)
    ]
    refusals = await refused(house.session, definitions)
    assert len(refusals) < len(definitions) / 20, refusals
    await house.sound()


def test_python_answers_every_value() -> None:
    check(accepted(by_calls))


def by_calls(case: Case) -> Definitions:
    option, value, name = case
    entry = option.entry(value)
    if option.path[2:] == ("tasks",) or str(option) in ("actions.function", "triggers.poll.function"):
        entry = option.entry(option.legal())  # in Python these are code
    if option.path[0] == "actions":  # and None is what was not given
        entry = {name: value for name, value in entry.items() if value is not None}
    return in_python(option, name, entry)


def check(outcomes: Iterator[tuple[Case, Definitions | PenstockError]]) -> None:
    """Each legal value is taken, and nothing is taken that the schema for editors refuses: it asks no more than the models."""
    schema = Draft202012Validator(SCHEMA)
    differences = []
    for (option, value, name), outcome in outcomes:
        refused = isinstance(outcome, PenstockError)
        if option.has_legal_value and refused and json.dumps(value) == json.dumps(option.legal()):
            differences.append(f"{option} = {value!r} is legal, and refused: {outcome}")
        document = pack(option, name, option.entry(value))
        if (
            not refused
            and value is not None
            and option.path[-1] not in IN_CODE
            and (mismatch := next(schema.iter_errors(document), None))
        ):
            differences.append(
                f"{option} = {str(value)[:60]!r} is taken, and against the schema: {mismatch.message[:100]}"
            )
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences)
