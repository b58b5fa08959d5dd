"""The actions of the clusters of tests: importable there, too."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

from penstock import Secret, Trigger, action, current

LONG = 120.0
"""Seconds after which work that nobody ended ends by itself."""

counted = Trigger("compute.counted")


@action(pack="compute")
def double(n: int) -> int:
    print("doubling", n)
    return 2 * n


@action(pack="compute")
def log_in(password: Annotated[str, Secret]) -> str:
    print("with", password)
    return os.environ.get("DASK_SCHEDULER_ADDRESS") or os.environ["RAY_ADDRESS"]


def begin(folder: str) -> str:
    """Write the pid into `<attempt>.pid`. If `go` is there it ends at once, else it beats into `beats`."""
    run, home = current(), Path(folder)
    (home / f"{run.attempt}.pid").write_text(f"{os.getpid()} {os.getppid()}")
    deadline = time.monotonic() + LONG
    while not (home / "go").exists() and time.monotonic() < deadline:
        with (home / "beats").open("a") as file:
            file.write(".")
        time.sleep(0.02)
    return f"attempt {run.attempt}"


@action(pack="compute")
def again(folder: str) -> str:
    return begin(folder)


@action(pack="compute", on_worker_loss="fail")
def once(folder: str) -> str:
    return begin(folder)
