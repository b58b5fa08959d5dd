"""The processes that use a server, counted by the kernel.

Every user keeps a named pipe open for writing, and the server's guard has it open for reading. Nothing is ever
written. The kernel closes a user's end when its process dies, however it dies. The guard's read returns when the last
end is closed. Use these functions only under the server's lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import ConfigurationError, ConnectionFailed

LOCK_DEADLINE = 180.0  # seconds; another process may be making the data folder or recovering it
_mine: set[int] = set()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a server's folder, so that only one process starts, joins or stops it at a time."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + LOCK_DEADLINE
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise ConnectionFailed(
                    f"Another process has been starting or stopping PostgreSQL for {LOCK_DEADLINE:.0f} s.",
                    hint=f"Find the process that holds the lock with: lsof {path}",
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make(path: Path) -> None:
    """Create the pipe unless it exists. The pipe is never replaced, since running users have it open."""
    if path.is_fifo():
        return
    try:
        os.mkfifo(path, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"No named pipe can be made at {path}: {error.strerror}.",
            hint="Choose a folder on a local disk: some network and shared folders have no pipes.",
        ) from error


def join(path: Path) -> int | None:
    """Become a user; return None if no guard reads the pipe, since then no guard would notice our end."""
    try:
        return _keep(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


@contextlib.contextmanager
def first(path: Path) -> Iterator[int]:
    """Become a user before there is a guard, which has to open the pipe within the block."""
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = _keep(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    try:
        yield writer
    except BaseException:
        leave(writer)
        raise
    finally:
        os.close(reader)


def leave(user: int) -> None:
    _mine.discard(user)
    os.close(user)


def nobody(path: Path) -> bool:
    """Return True if no live process uses the server."""
    probe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(probe, 1) == b""  # the end of the file: no writer is left
    except BlockingIOError:
        return False
    finally:
        os.close(probe)


def _keep(user: int) -> int:
    _mine.add(user)
    return user


def _forget_after_fork() -> None:
    # A forked child, such as a worker process, must not keep the server alive after its parent.
    for user in _mine:
        os.close(user)
    _mine.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
