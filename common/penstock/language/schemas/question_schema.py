"""The schema and the default of a question to a human, checked when it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import DefinitionError, PenstockError
from penstock.language.schemas.declared_schema import check_words
from penstock.language.schemas.schema import Schema
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.schemas.schema_tree import normalise
from penstock.language.terms.options import Wrong
from penstock.run.outcomes import Outcome


def question_schema(declared: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the schema of the answer to a question, checked. Raises DefinitionError: no answer could ever be given."""
    if declared is None:
        return None
    try:
        check_schema(declared)
        check_words(declared)
    except Wrong as error:
        raise DefinitionError(f"the schema of the answer {error}", hint=error.hint) from None
    schema: dict[str, Any] = normalise(declared)
    return schema or None


def check_default(default: Any, schema: Mapping[str, Any] | None, *, cap: int) -> None:
    """Check that the default answer of a question fits its schema. Raises InvalidInput otherwise."""
    if default is not None:
        Schema(schema).check(default, what="the default answer", cap=cap)


def with_checked_question(outcome: Outcome) -> Outcome:
    """Return an outcome unchanged, but a failed one for a question with a schema that is invalid, or refuses its default. No
    answer could end such a question. Another attempt would ask the same, so it has failed for good."""
    if outcome.inquiry is None:
        return outcome
    try:
        schema = question_schema(outcome.inquiry["schema"])
        check_default(outcome.inquiry["default"], schema, cap=PAYLOAD_CAP)
    except PenstockError as error:
        return Outcome.refused(error, retryable=False)
    return replace(outcome, inquiry={**outcome.inquiry, "schema": schema})
