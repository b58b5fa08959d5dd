"""The process beside an embedded server: its parent, which stops it when the last user is gone.

`server.py` runs this file as a script, and writes its task, a JSON object, to its standard input. The task contains
the server's environment, which other users must not read, as they could in a command line. The script imports only
the standard library, so that it stays small. No process waits for it: it outlives the process that started it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Signals with the seconds for each: fast shutdown (disconnects clients, writes a checkpoint), immediate shutdown,
# kill.
WAYS_TO_STOP = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))


def halt(pid: int, has_ended: Callable[[float], bool]) -> None:
    """Stop a postmaster, each time less gently. `has_ended(seconds)` waits at most that long, and returns True if it
    is gone."""
    for number, seconds in WAYS_TO_STOP:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if has_ended(seconds):
            return


def main() -> None:
    task = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if os.fork():
        os._exit(0)
    users = os.open(task["users"], os.O_RDONLY)
    gone = threading.Event()
    if task["pid"] is None:
        child = _spawn(task)
        pid = child.pid
        watch = threading.Thread(target=_watch_child, args=(child, gone), daemon=True)
    else:
        # The first guard of this server was killed. The server is not our child, so we can only poll it.
        pid = task["pid"]
        watch = threading.Thread(target=_watch_other, args=(pid, gone), daemon=True)
    watch.start()
    print(pid, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    threading.Thread(target=_leave_with_server, args=(gone,), daemon=True).start()
    while True:
        os.read(users, 1)  # returns when the last user is gone
        with open(task["lock"], "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _nobody(task["users"]):  # otherwise a new user came while we waited for the lock
                halt(pid, gone.wait)
                os._exit(0)


def _spawn(task: dict[str, Any]) -> subprocess.Popen[bytes]:
    log = os.open(task["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return subprocess.Popen(
        task["command"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=task["env"],
        cwd="/",
        **task["spawn"],
    )


def _watch_child(child: subprocess.Popen[bytes], gone: threading.Event) -> None:
    child.wait()
    gone.set()


def _watch_other(pid: int, gone: threading.Event) -> None:
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            gone.set()
            return
        time.sleep(0.5)


def _leave_with_server(gone: threading.Event) -> None:
    gone.wait()
    time.sleep(0.1)  # lets `halt` notice it first
    os._exit(0)


def _nobody(users: str) -> bool:
    probe = os.open(users, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(probe, 1) == b""
    except BlockingIOError:
        return False
    finally:
        os.close(probe)


if __name__ == "__main__":
    main()
