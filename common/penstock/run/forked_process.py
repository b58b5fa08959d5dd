"""The end of a process that an action forked, when it returns from the action's function."""

from __future__ import annotations

import os
from typing import NoReturn

from penstock.run.outcomes import Outcome


def end_forked_process(outcome: Outcome) -> NoReturn:
    """End this process, with the status that Python would give it.

    The process is a copy of the worker's. If it went on, it would answer for its parent, take the parent's next job, and
    keep the parent's connections.
    """
    error = outcome.error
    if error is not None and error.type != "SystemExit":
        os.write(2, error.traceback.encode(errors="replace"))
        os._exit(1)
    status = "" if error is None else error.message
    os._exit(int(status) & 0xFF if status.isdecimal() else int(status not in ("", "None")))
