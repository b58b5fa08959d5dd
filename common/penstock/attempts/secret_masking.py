"""The masking of secrets in the output and the errors of a run.

A stored secret is one that `penstock secrets set` has stored. The log, the error and the history show neither a stored
secret nor a parameter that is marked as secret. The result and the carried values show no stored secret either. Keeping
marked parameters out of these is left to the action. The steps of a durable function are masked too. A name by which a
row is looked up later cannot be masked: a name with a stored secret in it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson
from pydantic_core import PydanticSerializationError, to_jsonable_python

from penstock.engine.durable.records import Record
from penstock.errors import DefinitionError
from penstock.language.expressions import SecretName, SecretText
from penstock.language.rules.secret_references import put_back
from penstock.language.terms.redaction import cleaned, concealed
from penstock.run.task_executors import Outcome

SHORTEST_IN_NAMES = 8
"""The length of the shortest secret, in characters, that a name may not hold. Shorter ones may be there by chance."""


def concealed_outcome(outcome: Outcome, secrets: Sequence[str], of_store: Sequence[str] = ()) -> Outcome:
    if of_store:
        if outcome.outside is not None and _names(outcome.outside.get("id"), of_store):
            return Outcome.refused(_refusal("the id of `later`"), retryable=False)
        if outcome.inquiry is not None and _is_default(outcome.inquiry, of_store):
            return Outcome.refused(_refusal("the default answer of a question"), retryable=False)
        outcome = _without(outcome, of_store)
    error = outcome.error
    if error is None or not secrets:
        return outcome
    masked = replace(
        error,
        type=concealed(error.type, secrets),
        message=concealed(error.message, secrets),
        traceback=concealed(error.traceback, secrets),
        cause=cleaned(error.cause, secrets),
        answer=cleaned(error.answer, secrets),
    )
    return replace(outcome, error=masked)


def conceal_step(step: Record, secrets: Sequence[str], of_store: Sequence[str]) -> None:
    """Mask the secrets in a step before it is recorded. The function then gets the masked value, in the first attempt
    too. Raises DefinitionError if its name contains a stored secret."""
    if _names(step.key.name, of_store):
        raise _refusal(f"the name of a {step.kind}")
    if step.result is not None and of_store:
        step.result = orjson.dumps(cleaned(orjson.loads(step.result), of_store)).decode()
    if step.error is not None and secrets:
        step.error = orjson.dumps(cleaned(orjson.loads(step.error), secrets)).decode()


def passed_on(value: Any, names: Mapping[str, str], forms: Sequence[str]) -> Any:
    """Return the parameters that a durable function passes to a child, in their stored form.

    References replace the stored secrets (`names`, by value), and the child's worker reads the secrets itself. A
    text that was computed from a secret, such as its base64, has no reference, and is masked.
    """
    if not names:
        return value
    with suppress(PydanticSerializationError):  # a value that is not JSON is refused later, by its check
        value = to_jsonable_python(value)
    return _without_forms(put_back(value, names), forms)


def _names(name: str | None, of_store: Sequence[str]) -> bool:
    return name is not None and any(len(form) >= SHORTEST_IN_NAMES and form in name for form in of_store)


def _is_default(inquiry: Mapping[str, Any], of_store: Sequence[str]) -> bool:
    """Return whether a secret is in the default answer of a question. Masked, it would be another answer."""
    return bool(cleaned(inquiry.get("default"), of_store) != inquiry.get("default"))


def _refusal(label: str) -> DefinitionError:
    return DefinitionError(
        f"{label} contains a stored secret, and would be shown with the execution",
        hint="Use a value that is not a secret, such as the number of the order.",
    )


def _without(outcome: Outcome, secrets: Sequence[str]) -> Outcome:
    result = outcome.result_json
    if result is not None:
        result = orjson.dumps(cleaned(orjson.loads(result), secrets))
    carry, inquiry = cleaned(outcome.carry, secrets), cleaned(outcome.inquiry, secrets)
    return replace(outcome, result_json=result, carry=carry, inquiry=inquiry)


def _without_forms(value: Any, forms: Sequence[str]) -> Any:
    """Return a value with `forms` masked. References to secrets are texts too, and stay."""
    if isinstance(value, SecretText):
        return SecretText.of(
            [part if isinstance(part, SecretName) else concealed(part, forms) for part in value.parts]
        )
    if isinstance(value, str):
        return concealed(value, forms)
    if isinstance(value, Mapping):
        return {name: _without_forms(item, forms) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_forms(item, forms) for item in value]
    return value
