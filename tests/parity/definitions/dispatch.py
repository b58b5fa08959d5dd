"""Task executors of one's own, and actions for them."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

from penstock import action, register_executor, workflow
from penstock.run.calls import call
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally


class Probe:
    """Runs coroutines, and tells what it was given of them."""

    def __init__(self, *, name: str = "probe", capacity: int = 10) -> None:
        self.name = name
        self._tally = Tally(name, capacity)

    async def open(self) -> None: ...

    async def execute(self, run: Run) -> Outcome:
        started, outcome = self._tally.start(), None
        try:
            outcome = await call(run)
            if run.action.options.get("tell"):
                event = {field.name: str(getattr(run.event, field.name)) for field in fields(run.event)}
                outcome = Outcome.returned({"event": event, "executor": self.name})
            return outcome
        finally:
            self._tally.end(started, outcome)

    def has_capacity(self) -> bool:
        return self._tally.has_capacity()

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None: ...


register_executor("probe", Probe, capacity=10)
register_executor("single", Probe, name="single", capacity=1)


@action(pack="dispatch", executor="probe", options={"tell": True})
async def told(secret: str) -> None: ...


@action(pack="dispatch", executor="probe")
async def fails() -> None:
    raise ValueError("as told")


@action(pack="dispatch", executor="single")
async def alone(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@action(pack="dispatch", executor="process", route="bare")
def by_process() -> str:
    return "done"


@action(pack="dispatch", route="mailed")
async def mailed(secret: str) -> str:
    return secret


@workflow(pack="dispatch")
def inside() -> Any:
    return {"told": told(secret="hush")}
