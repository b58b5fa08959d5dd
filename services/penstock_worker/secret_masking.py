"""What a run prints and how it fails, without the parameters that are marked as secret: neither its log, nor its error,
nor the history shows one. A result is its action's own to keep clean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.language.redaction import concealed
from penstock.run.task_executors import Outcome


def concealed_outcome(outcome: Outcome, secrets: Sequence[str]) -> Outcome:
    error = outcome.error
    if error is None or not secrets:
        return outcome
    message, traceback = concealed(error.message, secrets), concealed(error.traceback, secrets)
    return replace(outcome, error=replace(error, message=message, traceback=traceback))
