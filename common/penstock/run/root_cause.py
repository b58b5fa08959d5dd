"""The cause of a failure, inside errors as they are stored: the first task, item or step that failed, at any depth.

An error that only says that something inside has failed (`TaskFailed`, `ItemsFailed`, `StepFailed`) has a member `cause`:
`path` leads there (`invoice.parse[2]`), and `type` and `message` are those of its own error. `attempt` is the number of its last
attempt, if that is known. `headline` makes the one sentence of it that all outputs show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import ExecutionFailed, StepFailed
from penstock.run.cut_texts import ELLIPSIS, cut_end
from penstock.run.failures import leaves

MESSAGE_CHARACTERS = 300
"""The maximum length of a message in a cause and in a headline, in characters."""
ROW_CHARACTERS = 120
"""The maximum length of a headline in a row of a list, in characters."""
SENTENCE_END = re.compile(r"(?:\w{3}|[\W_]\d+|[)\]\"'`%])(\.)\s+(?=[A-Z`])")
"""The end of a sentence, before another one. After a shorter word a point may belong to an abbreviation."""
STATUSES = frozenset({"failed", "timeout", "cancelled", "abandoned", "skipped"})
"""The types of errors that say no more than the status of the execution. Their message is the reason."""
WHOLE_MESSAGES = STATUSES | {"ExecutionFailed"}
"""The types of errors with a message that is a sentence by itself. A headline leaves the type out."""
CANCELLED = "cancelled"
REQUESTED_ENDS = frozenset({CANCELLED, "timeout"})
"""The statuses that can be requested of an execution which runs."""


def cause_inside(step: str, error: Any, attempt: int | None = None) -> dict[str, Any]:
    """Return the cause of a failure of `step`: a task, a step, or an item as `[2]`. `error` is the stored error of the step,
    and `attempt` the number of its last attempt."""
    if isinstance(error, Mapping) and isinstance(inner := error.get("cause"), Mapping):
        path = str(inner.get("path", ""))
        separator = "" if not path or path.startswith("[") else "."
        return {**inner, "path": f"{step}{separator}{path}"}
    kind, message = _parts(error)
    cause: dict[str, Any] = {"path": step, "type": kind, "message": message}
    return cause if attempt is None else {**cause, "attempt": attempt}


def cause_of_exception(error: BaseException) -> Mapping[str, Any] | None:
    """Return the cause in the exception of a failed step, or in a group of them; None for any other exception. A step that
    was cancelled comes last: it may have been cancelled because another one failed."""
    steps = [leaf for leaf in leaves(error) if isinstance(leaf, StepFailed) and leaf.cause is not None]
    steps.sort(key=lambda step: step.status == CANCELLED)
    return steps[0].cause if steps else None


def headline(error: Any, reason: str | None = None) -> str | None:
    """Return the sentence that names the cause of a failure, without a full stop: `parse[2], attempt 3: ValueError: not a
    PDF`. `error` is the stored error of an execution. Without one the sentence is the `reason` of its status; None without
    either."""
    if error is None:
        return reason
    cause = error.get("cause") if isinstance(error, Mapping) else None
    if not isinstance(cause, Mapping):
        return _sentence(*_parts(error)) or reason
    attempt = cause.get("attempt")
    tries = f", attempt {attempt}" if isinstance(attempt, int) and attempt > 1 else ""
    text = _sentence(cause.get("type") or "", cause.get("message") or "")
    place = f"{cause.get('path', '')}{tries}"
    return f"{place}: {text}" if place and text else place or text


def short_cause(text: str) -> str:
    """Return a headline for a row of a list: its first sentence, of at most 120 characters. A mark stands for the rest, such as a
    hint."""
    end = SENTENCE_END.search(text)
    sentence = text if end is None else f"{text[: end.start(1)]} {ELLIPSIS}"
    return cut_end(sentence, ROW_CHARACTERS)


def failure_sentence(status: str, error: Any, reason: str | None) -> str | None:
    """Return the headline of an execution that ended with another status than completed. If its end was requested, the
    reason of the request comes first, and what the execution raised then follows in parentheses."""
    failure = headline(error, reason)
    if status not in REQUESTED_ENDS or not reason or failure is None:
        return failure
    if failure in reason or reason.removesuffix("…") in failure:
        return failure
    return f"{reason} ({failure})"


def execution_failed(id: object, status: str, error: Any, failure: str | None = None) -> ExecutionFailed:
    """Return the exception for the caller that awaits an execution which ended with another status than completed.
    `failure` is the sentence about it; the headline of the error if it is not known."""
    failure = failure or headline(error)
    return ExecutionFailed(
        f"execution {id} ended as {status}" + (f": {failure}" if failure else ""),
        hint=f"`penstock show {id}` shows its course.",
        execution_id=id,
        status=status,
    )


def child_failed(
    id: object, action: str, status: str, error: Any, failure: str | None = None
) -> ExecutionFailed:
    """Return the exception for an attempt that awaits an execution of `action`, which ended with another status than
    completed. The exception has no hint: the attempt stores its text as the message of its own failure, on every level
    again. `failure` is that of execution_failed."""
    failure = failure or headline(error)
    end = "failed" if status == "failed" else f"ended as {status}"
    return ExecutionFailed(
        f"{action} ({id}) {end}" + (f": {failure}" if failure else ""),
        execution_id=id,
        status=status,
    )


def child_timed_out(id: object, action: str, seconds: float, status: str) -> TimeoutError:
    """Return the exception for an attempt that has awaited an execution of `action` for `seconds`. The execution still has
    `status`."""
    return TimeoutError(
        f"{action} ({id}) did not end within {seconds:g} s: it is {status}. `penstock why {id}` tells what it waits for"
    )


def _parts(error: Any) -> tuple[str, str]:
    """Return the type and the message of a stored error. An error that is not an object has no type."""
    if isinstance(error, Mapping):
        return str(error.get("type") or ""), _shortened(str(error.get("message") or ""))
    return "", "failed" if error is None else _shortened(str(error))


def _sentence(kind: str, message: str) -> str:
    if kind in WHOLE_MESSAGES and message:
        return _shortened(message)
    return ": ".join(part for part in (kind, _shortened(message)) if part)


def _shortened(message: str) -> str:
    return cut_end(" ".join(message.split()), MESSAGE_CHARACTERS)
