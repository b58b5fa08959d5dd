"""An attempt that this worker owns, with what its run needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from penstock.run.task_executors import TaskReadyEvent
from penstock_worker.records.action_versions import ActionVersion
from penstock_worker.records.traced_attempt import TracedAttempt


@dataclass(slots=True)
class OwnedAttempt:
    """An attempt that this worker has claimed, ready to run. `failures`: attempts of its execution that failed before."""

    event: TaskReadyEvent
    version: ActionVersion
    failures: int
    claim: UUID
    params: Mapping[str, Any]
    carry: Mapping[str, Any]
    context: Mapping[str, Any]
    waited: float
    """Seconds since it was ready, on the database's clock."""
    of_route: str | None = None
    """The task executor of the route that it came by, if that has one."""
    secrets: tuple[str, ...] = ()
    """Texts that its log and its error must not show."""
    traced: TracedAttempt | None = None
    refers: bool = False
    """Its parameters refer to secrets or to stored results, which are read before it runs."""
    of_store: tuple[str, ...] = ()
    """Those of them that came of the secrets store: its result must not show these either."""
    store_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the store's secrets by their texts, longest first: what it passes on is kept as a reference."""
