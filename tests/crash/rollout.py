"""The steps of durable functions in two versions, and the deaths of their workers between two calls."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from penstock import Trigger, current

FOLDER = "ROLLOUT_FOLDER"
"""An environment variable: the folder with the file of calls, and with a file for each place where a worker kills itself."""
paid = Trigger("rollout.paid")
refunded = Trigger("rollout.refunded")


def folder() -> Path:
    return Path(os.environ[FOLDER])


async def call(step: str) -> str:
    note(step)
    return step


async def undo(step: str) -> None:
    note(f"undo-{step}")


def note(step: str) -> None:
    """Add a call to the file: the execution, the process and the step."""
    with (folder() / "calls").open("a") as calls:
        calls.write(f"{current().execution_id} {os.getpid()} {step}\n")


def die(place: str) -> None:
    """Kill this worker at this place of a function, once, if the test asks for it."""
    wish = folder() / f"die-{place}"
    try:
        wish.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
