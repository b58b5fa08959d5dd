"""The work that goes on while definitions are applied: open executions of former versions, and workers with their code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.operate.apply import Change
from penstock.settings import Settings
from penstock.store.definitions import catalog
from penstock.store.definitions.catalog import FormerRuns
from penstock.store.processes import presence
from penstock.store.processes.presence import OfferingWorker
from penstock.store.session.database import Session

RUNS = ("action", "workflow")
"""The kinds of definitions that executions run."""


@dataclass(frozen=True, slots=True)
class RunningWork:
    """The open executions of former versions of the applied definitions, and the live workers that offer the applied
    actions. The code of these workers is that with which they were started."""

    former: Sequence[FormerRuns]
    workers: Sequence[OfferingWorker]

    def open_runs(self, change: Change) -> int:
        """Return the number of open executions of former versions of this definition."""
        return sum(runs.open for runs in self.former if (runs.kind, runs.ref) == (change.kind, change.ref))

    def workers_of(self, change: Change) -> list[str]:
        """Return the names of the workers that offer this action."""
        offers = change.kind == "action"
        return [worker.name for worker in self.workers if offers and change.ref in worker.actions]


async def running_work(session: Session, settings: Settings, changes: Sequence[Change]) -> RunningWork:
    """Return the work that goes on beside these changes."""
    names = [(change.kind, change.ref) for change in changes if change.kind in RUNS]
    if not names:
        return RunningWork([], [])
    return RunningWork(
        await catalog.former_runs(session, names),
        await presence.offering(
            session, settings.stale_threshold, [ref for kind, ref in names if kind == "action"]
        ),
    )
