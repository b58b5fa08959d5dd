"""The arguments of the calls of a durable function, checked where the call stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from penstock.engine.durable.step_tries import policy_of
from penstock.errors import DefinitionError
from penstock.language.policies.policies import RetryPolicy
from penstock.run.durations import HINT, Span, WrongDuration, seconds


def span(value: Span, label: str) -> float:
    """Return a duration in seconds. Raises DefinitionError, which names `label`, for a value that is not a duration."""
    try:
        return seconds(value)
    except WrongDuration as wrong:
        addition = "" if ":" in str(wrong) else f", not {value!r:.80}"
        raise DefinitionError(f"{label} {wrong}{addition}", hint=HINT) from None


def step_policy(name: object, retry: RetryPolicy | Mapping[str, Any] | int | None) -> RetryPolicy:
    """Return the retry policy of a step. Raises DefinitionError if `retry` describes no retry policy."""
    try:
        return policy_of(retry)
    except (ValidationError, ValueError, TypeError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            fault = error.errors()[0]
            why = f"{'.'.join(map(str, fault['loc'])) or 'it'}: {fault['msg']}"
        raise DefinitionError(
            f"the retry of the step {name!r:.80} is {retry!r:.80}: {why}",
            hint="Give the total number of tries, at least 1, or a RetryPolicy.",
        ) from None


def map_items(items: Iterable[Any], ref: str) -> list[dict[str, Any]]:
    """Return the items of a map. Raises DefinitionError for an item that is not the parameters of an execution."""
    entries = []
    for at, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise DefinitionError(
                f"item {at} of ctx.map({ref}) is not a mapping of parameters: {item!r:.80}",
                hint='Name the parameter: ctx.map(action, [{"n": n} for n in numbers]).',
            )
        entries.append(dict(item))
    return entries
