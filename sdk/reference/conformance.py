"""The actions of `penstock worker-conformance`, for the reference worker."""

from __future__ import annotations

import os
import time
from typing import Any

from worker import Defer, Failed, Run, Worker


def sleep(run: Run, seconds: float) -> None:
    """Sleep until the attempt is cancelled."""
    if run.cancelled.wait(seconds):
        raise InterruptedError("cancelled")


def play(run: Run, steps: list[dict[str, Any]], secret: str = "") -> Any:
    """Play the steps of a case."""
    attempt = run.given["attempt"]
    for step in steps:
        [(kind, value)] = step.items()
        is_first = attempt == 1
        if kind == "return":
            return value
        elif kind == "large":
            return "x" * value
        elif kind == "return_run":
            return run.given
        elif kind == "return_state":
            return run.given["state"]
        elif kind == "return_attempt":
            return attempt
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
            raise Failed(**value)
        elif kind == "fail_with_secret":
            raise Failed("Leaky", f"with {secret}", retryable=False)
        elif kind == "fail_until" and attempt < value:
            raise ConnectionError(f"attempt {attempt} failed")
        elif kind == "defer_once" and run.given["state"] is None:
            raise Defer(*value)
        elif kind == "crash_first" and is_first:
            os._exit(7)
    return None


if __name__ == "__main__":
    Worker(
        os.environ["PENSTOCK_SERVER"],
        os.environ["PENSTOCK_TOKEN"],
        {f"conformance.{name}": play for name in ("play", "once", "brief")},
        name=os.environ["PENSTOCK_NAME"],
        routes=os.environ["PENSTOCK_ROUTES"].split(","),
        slots=int(os.environ["PENSTOCK_SLOTS"]),
    ).run(grace=float(os.environ["PENSTOCK_GRACE"]))
