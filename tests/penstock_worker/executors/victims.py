"""The functions that tests run in child processes: at the top level of a module, so that a child can import it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.run.batch_item import Item
from penstock.run.context import current
from penstock.run.steering import AskInquiry, Defer, NonRetryable, Retry


class Wrapped:
    """An action in the place of its function, as a decorator may leave it behind."""

    def __init__(self, function: Any) -> None:
        self.function = function


def own_pid() -> int:
    return os.getpid()


def fail() -> None:
    raise KeyError("glue")


def exit_now(status: int) -> None:
    os._exit(status)


def exit_politely() -> None:
    sys.exit(4)


def segfault() -> None:
    ctypes.string_at(0)


def close_everything() -> None:
    os.closerange(3, 4096)
    time.sleep(60)


def say_in_every_way() -> None:
    print("printed")
    print("complained", file=sys.stderr)
    current().log("logged")


def write_natively() -> None:
    subprocess.run(["echo", "from a grandchild"], check=True)
    os.write(2, b"from C\n")


def allocate(megabytes: int) -> int:
    return len(bytearray(megabytes * 2**20))


def tidy(path: str) -> None:
    try:
        Path(path).write_text("began")
        time.sleep(60)
    finally:
        Path(path).write_text("tidied")


def tidy_slowly(path: str) -> None:
    try:
        Path(path).write_text("began")
        time.sleep(60)
    finally:
        time.sleep(1.5)
        Path(path).write_text("tidied")


def tidy_what_was_not_heard(path: str) -> None:
    """Clean up as if the signal had come between two instructions before the sleep: the first is lost."""
    heard = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        Path(path).write_text("began")
        while not Path(f"{path}.sent").exists():
            time.sleep(0.01)
        signal.signal(signal.SIGTERM, heard)
        time.sleep(60)
    finally:
        Path(path).write_text("tidied")


async def tidy_coroutine(path: str) -> None:
    try:
        Path(path).write_text("began")
        await asyncio.sleep(60)
    finally:
        Path(path).write_text("tidied")


def say_goodbye(path: str) -> None:
    try:
        Path(path).write_text("began")
        time.sleep(60)
    finally:
        print("goodbye")


def interfere() -> None:
    """Write nonsense to every socket of this process: the one to the worker is among them."""
    for fd in range(3, 4096):
        try:
            os.write(fd, b"\0\0\0\5Onope")
        except OSError:
            continue
    time.sleep(60)


def ignore_everything(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(path).write_text(str(os.getpid()))
    for _ in range(60):
        time.sleep(1)


def with_a_grandchild(path: str) -> None:
    child = subprocess.Popen(["sleep", "60"])
    Path(path).write_text(str(child.pid))
    child.wait()


def retry() -> None:
    raise Retry(after=7, message="later")


def refuse() -> None:
    raise NonRetryable("never")


def defer() -> None:
    raise Defer(until=datetime(2030, 1, 1, tzinfo=UTC), state={"page": 3})


def ask() -> AskInquiry:
    return AskInquiry("Go on?", schema={"type": "boolean"}, timeout=60)


def describe(thing: Any) -> str:
    return type(thing).__qualname__


@Wrapped
def wrapped(x: int) -> int:
    return x + 1


def of_a_batch(items: list[Item[int]]) -> list[int | Exception]:
    """Double the items and fail the second one. An item below zero ends the process."""
    print(f"{len(items)} items")
    for item in items:
        if item.input < 0:
            os._exit(3)
        item.log(f"item {item.input}")
        item.cost(tokens=item.input)
    return [ValueError("no two") if item.input == 2 else 2 * item.input for item in items]


def fork_and_return(status: int | None = None) -> str:
    """Fork a process that returns from the function, as the action does. With a status it exits instead."""
    if (pid := os.fork()) == 0:
        print("printed by the forked process")
        if status is not None:
            sys.exit(status)
        return "forked"
    _, ended = os.waitpid(pid, 0)
    return f"ended with {os.waitstatus_to_exitcode(ended)}"


def fork_and_raise() -> str:
    if (pid := os.fork()) == 0:
        raise ValueError("in the forked process")
    _, ended = os.waitpid(pid, 0)
    return f"ended with {os.waitstatus_to_exitcode(ended)}"


async def fork_in_a_coroutine() -> str:
    return fork_and_return()


def publish_from_a_fork() -> str:
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            current().sync.publish("shop.sold", {})
        except Exception as error:
            os.write(write, type(error).__name__.encode())
        os._exit(0)
    os.close(write)
    return os.read(read, 100).decode()
