"""The names of the built-in task executors, and the check for actions that ask for an unknown one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from penstock.errors import as_one
from penstock.language.terms.options import did_you_mean
from penstock.run.executor_registry import REGISTERED

BUILT_IN = ("async", "thread", "process", "command", "http", "kubernetes", "dask", "ray")
REMOTE = "remote"
"""The executor of actions that workers in other languages run. No worker with a session with the database has it."""


def refuse_unknown_executors(actions: Iterable[Any], configured: Collection[str]) -> None:
    """Raise one DefinitionError for all actions with an unknown task executor.

    A task executor is known if it is built in, registered by a loaded module, or named in PENSTOCK_EXECUTORS
    (`configured`). In that setting null names an executor that this worker does not have.
    """
    names = {*BUILT_IN, REMOTE, *REGISTERED, *configured}
    wrong = [action for action in actions if action.executor is not None and action.executor not in names]
    if wrong:
        raise as_one(
            [
                action.source.at(("executor",)).wrong(
                    f"action {action.ref}: there is no task executor {action.executor!r}",
                    f"{did_you_mean(action.executor, names)} Register one of your own in its module "
                    "(`register_executor`), or name it in PENSTOCK_EXECUTORS wherever its actions are applied or loaded "
                    "(null: not on this worker).",
                )
                for action in wrong
            ]
        )
