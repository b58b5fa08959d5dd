"""Forks a process for each job that it reads: all is imported once, so a process starts in a hundredth of a second.

A line of JSON is a job, or the end when there are no more; a line of JSON is what came of it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.crash.points.child import PATIENCE, Job, run
from tests.crash.points.sites import by_file


def main() -> None:
    folder = Path(sys.argv[1])
    by_file()  # the sources are read once, not by each child
    gc.collect()
    gc.freeze()  # nor does each look through what was imported
    for line in sys.stdin:
        print(json.dumps(_forked(Job(**json.loads(line)), folder / "report.json")), flush=True)


def _forked(job: Job, path: Path) -> dict[str, Any]:
    path.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 1
        os.dup2(2, 1)  # what a command prints is not an answer of ours
        try:
            path.write_text(json.dumps(asdict(run(job))))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    killed = _wait(pid, PATIENCE + 15)
    report = json.loads(path.read_text()) if path.exists() and not killed else {}
    return {"killed": killed, **report}


def _wait(pid: int, seconds: float) -> bool:
    """Return true if it ended by SIGKILL, which is then its own."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        time.sleep(0.003)
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


if __name__ == "__main__":
    main()
