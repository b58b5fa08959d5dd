"""The names of the task executors that every worker can have, and the check of actions that ask for an unknown one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from penstock.errors import as_one
from penstock.language.terms.options import did_you_mean
from penstock.run.executor_registry import REGISTERED

BUILT_IN = ("async", "thread", "process", "command", "http", "kubernetes", "dask", "ray")


def refuse_unknown_executors(actions: Iterable[Any], configured: Collection[str]) -> None:
    """Raise DefinitionError for actions with an unknown task executor, and name all of them. An executor is known if it is built
    in, registered by a loaded module, or in PENSTOCK_EXECUTORS (`configured`). There a worker names its own and omits others."""
    names = {*BUILT_IN, *REGISTERED, *configured}
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
