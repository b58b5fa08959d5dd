"""The actions of `penstock worker-conformance`, for the worker of Penstock itself: `python sdk/python/conformance.py`."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

from penstock import Defer, NonRetryable, Retry, Secret, action, current
from penstock.run.context import RunContext


def play_steps(steps: list[dict[str, Any]], secret: str) -> Any:
    """Play the steps of a case."""
    run = current()
    for step in steps:
        [(kind, value)] = step.items()
        is_first = run.attempt == 1
        if kind == "return":
            return value
        elif kind == "large":
            return "x" * value
        elif kind == "return_run":
            tenant = run.namespace.partition("::")[0]
            return {
                "execution": str(run.execution_id),
                "attempt": run.attempt,
                "action": run.action,
                "tenant": tenant,
            }
        elif kind == "return_state":
            return run.state
        elif kind == "return_attempt":
            return run.attempt
        elif kind == "log":
            run.log(value)
        elif kind == "log_secret":
            run.log(f"the secret is {secret}")
        elif kind == "progress":
            run.progress(*value)
        elif kind == "sleep" or (kind == "sleep_first" and is_first):
            sleep(run, value)
        elif kind == "stubborn" or (kind == "stubborn_first" and is_first):
            time.sleep(value)
        elif kind == "fail":
            raise error(**value)
        elif kind == "fail_with_secret":
            raise error("Leaky", f"with {secret}", retryable=False)
        elif kind == "fail_until" and run.attempt < value:
            raise ConnectionError(f"attempt {run.attempt} failed")
        elif kind == "defer_once" and run.state is None:
            raise Defer(delay=value[0], state=value[1])
        elif kind == "crash_first" and is_first:
            os._exit(7)
    return None


def sleep(run: RunContext, seconds: float) -> None:
    """Sleep until the attempt is cancelled."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if run.cancelled:
            raise InterruptedError("cancelled")
        time.sleep(0.02)


def error(
    type: str, message: str, *, retryable: bool | None = None, retry_after: float | None = None
) -> Exception:
    """Return an error with the name of its class, and with its own say about a retry."""
    namespace = {"__module__": "builtins", "__qualname__": type}
    if retryable is False:
        return make(type, (NonRetryable,), namespace)(message)
    if retry_after is not None:
        return make(type, (Retry,), namespace)(retry_after, message)
    return make(type, (Exception,), namespace)(message)


make = type


@action(pack="conformance")
def play(steps: list[dict[str, Any]], secret: Annotated[str, Secret] = "") -> Any:
    return play_steps(steps, secret)


@action(pack="conformance")
def once(steps: list[dict[str, Any]]) -> Any:
    return play_steps(steps, "")


@action(pack="conformance")
def brief(steps: list[dict[str, Any]]) -> Any:
    return play_steps(steps, "")


if __name__ == "__main__":
    variables = {
        **os.environ,
        "PENSTOCK_CONCURRENCY": os.environ["PENSTOCK_SLOTS"],
        "PENSTOCK_MODULES": __file__,
    }
    del variables["PENSTOCK_SLOTS"]
    os.execve(sys.executable, [sys.executable, "-m", "penstock", "worker"], variables)
