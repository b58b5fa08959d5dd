"""The names of our task executors, and the check for actions that ask for an unknown one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from penstock.errors import ConfigurationError, as_one
from penstock.language.terms.options import did_you_mean
from penstock.run.executor_registry import REGISTERED

BUILT_IN = ("async", "thread", "process", "command", "http", "kubernetes")
"""The task executors that every worker can have."""
PACKAGES: Mapping[str, str] = {"dask": "penstock-dask", "ray": "penstock-ray"}
"""The packages of our other task executors, by executor. Definitions may name these executors on every machine."""
BATCHING = ("async", "thread", "process")
"""The task executors that call a function with a batch."""
REMOTE = "remote"
"""The executor of actions that workers in other languages run. No worker with a session with the database has it."""


def refuse_unknown_executors(actions: Iterable[Any], configured: Collection[str]) -> None:
    """Raise one DefinitionError for all actions with an unknown task executor.

    A task executor is known if it is ours, registered by a loaded module, or named in PENSTOCK_EXECUTORS
    (`configured`). In that setting null names an executor that this worker does not have.
    """
    names = {*BUILT_IN, *PACKAGES, REMOTE, *REGISTERED, *configured}
    wrong = [action for action in actions if action.executor is not None and action.executor not in names]
    if wrong:
        raise as_one(
            [
                action.source.at(("executor",)).wrong(
                    f"action {action.ref}: there is no task executor {action.executor!r}",
                    f"{did_you_mean(action.executor, names)} Register your own executor in its module "
                    "(`register_executor`). Or name it in PENSTOCK_EXECUTORS on each machine that applies or loads its actions "
                    "(null: not on this worker).",
                )
                for action in wrong
            ]
        )


def refuse_batches_elsewhere(
    actions: Iterable[Any], route_executors: Mapping[str, str], routes: Iterable[str]
) -> None:
    """Raise ConfigurationError if one of these routes sends an action with batches to a task executor that takes none.
    `route_executors` has the executors of routes (PENSTOCK_ROUTE_EXECUTORS)."""
    elsewhere = {route: route_executors[route] for route in routes if route_executors.get(route)}
    for action in actions:
        for route, executor in elsewhere.items():
            if action.choices.batch is None or action.executor is not None or executor in BATCHING:
                continue
            raise ConfigurationError(
                f"the task executor {executor} of the route {route} takes no batches, which {action.ref} needs",
                hint="Declare executor='thread' or 'async' at the action, or change PENSTOCK_ROUTE_EXECUTORS.",
            )
