"""The conversion of an attempt to a job for another process: the place of its function, and its arguments."""

from __future__ import annotations

import os
import pickle
import sys

from penstock.errors import DefinitionError
from penstock.run.task_executors import Run
from penstock_worker.executors.python import frames


def job_of(run: Run, memory_limit: int | None = None) -> frames.Job:
    """Return the job of a run. `memory_limit` is in bytes. Raises the errors of `bind`. Raises DefinitionError for a
    function that another process cannot import, or for parameters that cannot be pickled."""
    function = run.action.function
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", "<unknown>")
    if module is None or "<" in qualname:
        raise DefinitionError(
            f"{run.action.ref} cannot run in another process: {qualname} has no name to import it by",
            hint="Define the function at the top level of a module.",
        )
    try:
        bound = run.action.bind(run.params) if run.items is None else [item.input for item in run.items]
        arguments = pickle.dumps(bound, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise DefinitionError(
            f"the parameters of {run.action.ref} cannot be sent to another process: {error}",
            hint="Give the function parameters that can be pickled.",
        ) from error
    return frames.Job(
        event=run.event,
        params=dict(run.params),
        carry=dict(run.carry),
        context=dict(run.context),
        trace=dict(run.trace),
        ref=run.action.ref,
        module=module,
        qualname=qualname,
        is_coroutine=run.action.is_coroutine,
        main=_main() if module == "__main__" else None,
        arguments=arguments,
        log_limit=run.log.left,
        result_limit=run.result_limit,
        memory_limit=memory_limit,
        items=None if run.items is None else [_item_of(item) for item in run.items],
    )


def _item_of(run: Run) -> frames.JobItem:
    return frames.JobItem(run.event, dict(run.params), dict(run.carry), dict(run.context), run.log.left)


def _main() -> dict[str, str]:
    """Return the way in which a child can import this process's main script, as multiprocessing does."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:
        return {"init_main_from_name": main.__spec__.name}  # type: ignore[union-attr]
    return {"init_main_from_path": os.path.abspath(main.__file__ or "")}
