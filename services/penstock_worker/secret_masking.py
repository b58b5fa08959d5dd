"""What a run prints and how it fails, without the parameters that are marked as secret: neither its log, nor its error,
nor the history shows one. A result is its action's own to keep clean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.language.schemas import MASK
from penstock.run.task_executors import Outcome

SHORTEST = 4
"""Characters. Shorter ones tell nothing, and to hide every `1` would hide everything."""


def worth_hiding(values: Sequence[str]) -> tuple[str, ...]:
    """Longest first, so that no piece of one is left."""
    return tuple(sorted({v for v in values if len(v) >= SHORTEST}, key=len, reverse=True))


def concealed(text: str, secrets: Sequence[str]) -> str:
    for value in secrets:
        text = text.replace(value, MASK)
    return text


def concealed_outcome(outcome: Outcome, secrets: Sequence[str]) -> Outcome:
    error = outcome.error
    if error is None or not secrets:
        return outcome
    message, traceback = concealed(error.message, secrets), concealed(error.traceback, secrets)
    return replace(outcome, error=replace(error, message=message, traceback=traceback))
