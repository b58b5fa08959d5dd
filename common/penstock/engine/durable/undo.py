"""The undo of a run that has failed for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.engine.durable.core import Core
from penstock.engine.durable.records import Record
from penstock.engine.durable.step_runs import run_step
from penstock.engine.durable.step_tries import policy_of


class Undo:
    """The functions that were registered with `on_failure`, in order, each with the key that its registration
    returned."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._registered: list[tuple[Record, Callable[[], Any]]] = []

    def register(self, name: str, function: Callable[[], Any]) -> None:
        """Register a function that is called if the run fails for good. Its key is that of the registering branch."""
        self._registered.append((self._core.journal.undo(name), function))

    async def run(self) -> list[str]:
        """Call the registered functions as steps, the last one first. Return those that failed, each with its error."""
        failed: list[str] = []
        while self._registered:
            record, function = self._registered.pop()
            try:
                await run_step(self._core, record, function, policy_of(None))
            except Exception as error:
                failed.append(str(error))
        return failed
