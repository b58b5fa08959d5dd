"""The action behind a poll trigger, which calls the trigger's function on a worker that has it.

Its result is `{"events": [...], "state": {...}}`: the payloads of the new events, and the state for the next call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.terms.options import read_options
from penstock.language.terms.sources import Source

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"state": {"type": "object"}},
    "additionalProperties": False,
}


def poll_action(
    ref: str, function: Callable[..., Any], timeout: float, source: Source, description: str
) -> Action[..., dict[str, Any]]:
    """Return an action with the trigger's name. The action has no retries, since its next call is one."""
    return Action(
        ref,
        choices=read_options(ActionOptions, {"timeout": timeout}, source, f"trigger {ref}"),
        parameters_schema=PARAMETERS,
        result_schema=None,
        bind=lambda params: {"state": dict(params.get("state") or {})},
        source=source,
        function=_called(function),
        description=description,
    )


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    knows = bool(inspect.signature(function).parameters)

    async def call(state: dict[str, Any]) -> dict[str, Any]:
        return _answer(await (function(state=state) if knows else function()), state)

    def call_plain(state: dict[str, Any]) -> dict[str, Any]:
        return _answer(function(state=state) if knows else function(), state)

    return call if inspect.iscoroutinefunction(function) else call_plain


def _answer(events: object, state: dict[str, Any]) -> dict[str, Any]:
    """Return the result for the events and state of a call. Raises TypeError if `events` is not a list of payloads."""
    if events is None:
        return {"events": [], "state": state}
    if not isinstance(events, Iterable) or isinstance(events, str | bytes | Mapping):
        raise TypeError(f"a poll trigger returns the events it found as a list, not {type(events).__name__}")
    return {"events": list(events), "state": state}
