"""The meaning of a program's exit status and output, for commands and for containers.

| exit status | meaning |
|---|---|
| 0 | completed; the result is the JSON that it printed last. |
| 75 (`EX_TEMPFAIL`) | failed, to be retried even if the policy lists other errors only. |
| 64, 65, 78 (`EX_USAGE`, `EX_DATAERR`, `EX_CONFIG`) | failed for good: another attempt meets the same. |
| any other, or a signal | failed; the retry policy decides. |

The numbers are those of BSD's sysexits.h. The error's type is `ExitStatus`, or `Killed` for a signal.
"""

from __future__ import annotations

import signal

import orjson

from penstock.errors import ResultNotStorable
from penstock.run.task_executors import Outcome, TaskError

TEMPORARY = 75
PERMANENT = frozenset({64, 65, 78})
_CANDIDATES = 64
"""The maximum number of possible starts of a document that are tried, in an output that is not JSON as a whole."""


def failure(status: int, stderr: str) -> Outcome:
    """Return the outcome of a program that ended with `status` (minus N for signal N) and with this standard error."""
    lines = stderr.rstrip().splitlines()
    last = lines[-1].strip() if lines else ""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        error = TaskError("Killed", f"killed by {name}" + (f": {last}" if last else ""), stderr)
    else:
        retryable = True if status == TEMPORARY else False if status in PERMANENT else None
        message = f"exit status {status}" + (f": {last}" if last else "")
        error = TaskError("ExitStatus", message, stderr, retryable)
    return Outcome.failed(error)


def success(output: bytes, limit: int, *, cut: bool = False) -> tuple[Outcome, bytes]:
    """Return the outcome of a program that succeeded, and the rest of its output.

    The result is the whole output if it is one JSON document, else the document at its end that starts on a new line.
    Empty output is null. `cut`: the beginning of the output is missing.
    """
    output = output.rstrip()
    if not output and not cut:
        return Outcome.returned(None), b""
    if not cut and _is_json(output):
        return Outcome.returned_json(output, limit), b""
    begin = len(output)
    for tried in range(_CANDIDATES):
        begin = output.rfind(b"\n", 0, begin)
        document = output[begin + 1 :]
        # A scalar is a result only on the last line. A document of several lines has to begin with a brace or a
        # bracket.
        if begin >= 0 and (tried == 0 or document[:1] in b"{[") and _is_json(document):
            return Outcome.returned_json(document, limit), output[: begin + 1]
        if begin < 0:
            break
    error = ResultNotStorable(
        "the output does not end with a JSON document",
        hint="Print the result as JSON on the last line of standard output, or set the option output: none.",
    )
    return Outcome.failed(error), output


def _is_json(document: bytes) -> bool:
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError:
        return False
    return True
