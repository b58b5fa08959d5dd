"""Fails, and says which, if a process that has to do with the given folder still runs a moment later."""

from __future__ import annotations

import os
import sys
import time

import psutil


def left(folder: str) -> list[str]:
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        try:
            words = [*(process.info["cmdline"] or []), *process.environ().values()]
        except psutil.Error:
            words = process.info["cmdline"] or []
        ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        if process.pid not in ours and any(folder in word for word in words):
            found.append(f"{process.pid} {' '.join(process.info['cmdline'] or [])[:150]}")
    return found


def main() -> None:
    for _ in range(50):
        if not left(sys.argv[1]):
            return
        time.sleep(0.2)
    sys.exit("These processes outlived the tests:\n" + "\n".join(left(sys.argv[1])))


if __name__ == "__main__":
    main()
