"""Ends what a test run has started, even when the run itself was killed.

A small process reads from a pipe what it has to end. When the pipe closes, because the run is over or
because the kernel closed it for a run that was killed, it ends whatever of that still lives and goes.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

PREFIX = "penstock-test-"  # a folder without it is never removed

_child: subprocess.Popen[str] | None = None


def watch_process(pid: int) -> None:
    """End process `pid` with this run. Its start time tells it from a later process of the same number."""
    _tell(f"process {pid} {psutil.Process(pid).create_time()}")


def watch_folder(folder: Path) -> None:
    """Remove `folder`, whose name starts with PREFIX, with this run."""
    if not folder.name.startswith(PREFIX):
        raise ValueError(f"{folder} is not a folder of the tests")
    _tell(f"folder {folder}")


def _tell(line: str) -> None:
    global _child
    if _child is None:
        # A session of its own: neither Ctrl-C nor a kill of the run's process group reaches it.
        _child = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        atexit.register(_close)
    assert _child.stdin is not None
    _child.stdin.write(line + "\n")
    _child.stdin.flush()


def _close() -> None:
    if _child is not None and _child.stdin is not None:
        _child.stdin.close()
        _child.wait(timeout=60)


def _main() -> None:
    doomed: list[tuple[int, float]] = []
    folders: list[Path] = []
    for line in sys.stdin:
        kind, rest = line.rstrip("\n").split(" ", 1)
        if kind == "folder":
            folders.append(Path(rest))
        else:
            pid, started = rest.split()
            doomed.append((int(pid), float(started)))
    left = [process for pid, started in doomed if (process := _same(pid, started)) is not None]
    left += [child for process in left for child in _children(process)]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=20)
    for folder in folders:
        _remove(folder)


def _children(process: psutil.Process) -> list[psutil.Process]:
    """All below it: what a process starts would outlive its kill."""
    with suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def _same(pid: int, started: float) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return process if abs(process.create_time() - started) < 0.05 else None
    except psutil.NoSuchProcess:
        return None


def _remove(folder: Path) -> None:
    # The children of a killed server write for another moment.
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.2)


if __name__ == "__main__":
    _main()
