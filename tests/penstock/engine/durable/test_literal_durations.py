"""The literal durations that lint names are those that are refused when the code runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from penstock.engine.durable.literal_durations import wrong_durations
from penstock.language.loading import load
from penstock.testing import Simulation
from tests.penstock.engine.durable import duration_calls

ACTIONS = load(duration_calls).actions
NAMES = sorted(ref.partition(".")[2] for ref in ACTIONS)


def _faults() -> dict[str, list[str]]:
    """Return the faults of each function of the module."""
    assert duration_calls.__file__
    tree = ast.parse(Path(duration_calls.__file__).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    faults = wrong_durations(action.function for action in ACTIONS.values() if action.function is not None)
    return {
        function.name: [
            fault.message for fault in faults if function.lineno <= fault.line <= (function.end_lineno or 0)
        ]
        for function in functions
    }


@pytest.mark.parametrize("name", NAMES)
def test_refused_literal_is_named(name: str) -> None:
    run = Simulation(duration_calls).start(f"{duration_calls.PACK}.{name}")
    is_refused = run.status == "failed"
    assert is_refused == (name.startswith("refused") or name == "calls_a_helper"), run.error
    named = _faults()["_refused_in_a_helper" if name == "calls_a_helper" else name]
    assert len(named) == is_refused, run.error


def test_fault_names_the_call_and_the_value() -> None:
    faults = _faults()
    assert faults["refused_sleep"] == ["the duration of `ctx.sleep` is not a duration: '1 day'"]
    assert faults["refused_negative_sleep"] == ["the duration of `ctx.sleep` must be between 0 and 100 years"]
    assert faults["refused_burst"] == ["the debounce of `run.start` is longer than a day"]
    assert faults["refused_policy"] == ["the initial_delay of `RetryPolicy` is not a duration: '1 min'"]


def test_file_without_source_has_no_faults() -> None:
    namespace: dict[str, object] = {}
    exec(compile("def made(ctx): ctx.sleep('1 day')", "<made>", "exec"), namespace)
    assert wrong_durations([namespace["made"]]) == []  # type: ignore[list-item]
