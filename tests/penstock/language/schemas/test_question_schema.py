"""Questions are checked when they are asked: no answer could end one with an invalid schema."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import AskInquiry
from penstock.errors import DefinitionError
from penstock.language.schemas.question_schema import question_schema, with_checked_question
from penstock.run.outcomes import Outcome

INVALID: list[Any] = [
    {"type": "nonsense"}, {"type": "string", "pattern": "("}, {"properties": 3}, {"$ref": "#/nope"}, {"typ": "integer"},
]  # fmt: skip


@pytest.mark.parametrize("schema", INVALID)
def test_invalid_schema_fails_question_for_good(schema: Any) -> None:
    with pytest.raises(DefinitionError, match="the schema of the answer"):
        question_schema(schema)
    outcome = with_checked_question(Outcome.raised(AskInquiry("?", schema=schema)))
    assert outcome.error is not None
    assert (outcome.kind, outcome.error.type, outcome.error.retryable) == ("failed", "DefinitionError", False)


def test_default_fits_schema() -> None:
    bad = with_checked_question(Outcome.raised(AskInquiry("?", schema={"type": "integer"}, default="x")))
    assert bad.error is not None
    assert bad.error.type == "InvalidInput"
    good = with_checked_question(Outcome.raised(AskInquiry("?", schema={"type": "integer"}, default=3)))
    assert (good.kind, good.inquiry and good.inquiry["default"]) == ("inquiry", 3)


@pytest.mark.parametrize("schema", [None, {}, {"const": 3}, {"type": "integer", "title": "n", "x-own": 1}])
def test_valid_schema_is_kept(schema: Any) -> None:
    assert question_schema(schema) == (schema or None)


def test_other_outcome_is_unchanged() -> None:
    outcome = Outcome.returned(3)
    assert with_checked_question(outcome) is outcome
