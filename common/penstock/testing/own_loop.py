"""The running of a coroutine to its end inside a test, which may have an event loop itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_own_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in its own event loop, in another thread if this thread has one."""
    if not has_loop():
        return asyncio.run(main)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, main).result()


def has_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
