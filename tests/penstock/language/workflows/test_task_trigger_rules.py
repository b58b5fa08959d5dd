"""An unknown part of a rule matters where the other parts leave the answer open, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.language.workflows.task_trigger_rules import All, AnyOf, NoneOf, SourceOutcomes, holds

LEAVES = {"yes": True, "no": False, "who knows": None}


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (All(all=("yes", "who knows")), None),
        (All(all=("who knows", "yes")), None),
        (All(all=("who knows", "no")), False),
        (All(all=("yes", "yes")), True),
        (AnyOf(any=("no", "who knows")), None),
        (AnyOf(any=("who knows", "yes")), True),
        (NoneOf(none=("no", "who knows")), None),
        (NoneOf(none=("who knows", "yes")), False),
        (NoneOf(none=("no", "no")), True),
    ],
    ids=str,
)
def test_it_is_unsure_where_it_has_to_be(rule: Any, answer: bool | None) -> None:
    assert holds(rule, SourceOutcomes(total=0), LEAVES.__getitem__) is answer
