"""An attempt that this worker owns, with the data for its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from penstock.run.task_executors import TaskReadyEvent
from penstock_worker.records.action_versions import ActionVersion
from penstock_worker.records.new_effect import NewEffect
from penstock_worker.records.traced_attempt import TracedAttempt


@dataclass(slots=True)
class OwnedAttempt:
    """An attempt that this worker has claimed, ready to run. `failures` counts earlier failed attempts of its
    execution."""

    event: TaskReadyEvent
    version: ActionVersion
    failures: int
    claim: UUID
    params: Mapping[str, Any]
    carry: Mapping[str, Any]
    context: Mapping[str, Any]
    waited: float
    """The seconds since the execution was ready, on the database's clock."""
    of_route: str | None = None
    """The task executor of the route by which the attempt came, or None."""
    secrets: tuple[str, ...] = ()
    """The texts that the attempt's log and error must not show."""
    traced: TracedAttempt | None = None
    refers: bool = False
    """True if the parameters refer to secrets or to stored results, which are read before the run."""
    of_store: tuple[str, ...] = ()
    """The texts in `secrets` that are from the secret store, which the result must not show either."""
    store_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the store's secrets by their values, longest value first, to store them as references when they are
    passed on."""
    named_secrets: Mapping[str, str] = field(default_factory=dict)
    """The stored secrets that the action's options name, by the names that its templates use."""
    token: str | None = None
    """The attempt's token for the API, or None."""
    effects: list[NewEffect] = field(default_factory=list)
    """The transactional requests of the attempt in order."""
