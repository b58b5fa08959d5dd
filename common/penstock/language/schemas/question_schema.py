"""The schema and the default of a question to a human, checked when it is asked, and the answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import DefinitionError, InvalidInput, PenstockError
from penstock.language.schemas.declared_schema import check_words
from penstock.language.schemas.schema import Schema
from penstock.language.schemas.schema_checks import check_schema
from penstock.language.schemas.schema_tree import normalise
from penstock.language.terms.options import Wrong
from penstock.run.outcomes import Outcome

LONGEST_SCHEMA = 200
"""The characters of a schema that a hint can show."""


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


def checked_answer(answer: object, document: Mapping[str, Any] | None, *, cap: int) -> bytes:
    """Return an answer as JSON. Raises InvalidInput for one that the schema of its question refuses, with a hint at those that it
    accepts."""
    schema = Schema(document)
    try:
        return schema.check(answer, what="response", cap=cap)
    except InvalidInput as error:
        error.hint = error.hint or schema.takes() or _accepted(schema)
        raise


def _accepted(schema: Schema) -> str | None:
    """Return a hint at the answers that a schema accepts, for one that is not of objects. None without a short schema."""
    if schema.document.get("type") == "boolean":
        return "Answer true or false."
    text = orjson.dumps(schema.document).decode()
    return f"The schema of the answer is {text}." if schema.document and len(text) <= LONGEST_SCHEMA else None


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
