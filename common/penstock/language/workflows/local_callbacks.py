"""Callbacks of a task that are plain functions of its module: each becomes an action, which is started when the task has ended.

    def note(task_id, context): ...
    def alert(task_id, error, context): ...

    @task(on_success=note, on_failure=alert)
    def load(context): ...

The arguments are those of Cloacina. There a callback runs inside the task's process and is lost with it; here it is an execution
of its own, which is recorded and recovered as every other. Its failure leaves the task as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import InvalidInput
from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.terms.options import read_options
from penstock.language.terms.sources import Source, of_code
from penstock.language.workflows.shared_context import Context

ENDS: Mapping[str, tuple[str, ...]] = {
    "on_success": ("task_id", "context"),
    "on_failure": ("task_id", "error", "context"),
}
"""The arguments of a callback function, by the option that names it."""
_PARAMETERS = {
    "type": "object",
    "properties": {
        "execution": {"type": "string"},
        "status": {"type": "string"},
        "result": {},
        "error": {},
        "parameters": {"type": ["object", "null"]},
    },
    "required": ["execution", "status"],
}


def actions(end: str, callbacks: Any, task: str, at: Source) -> tuple[list[Any], list[Action[..., Any]]]:
    """Return the callbacks of a task with functions replaced by actions, and these actions. `task` is the ref of the
    task. Raises DefinitionError for a function with other arguments."""
    several = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    functions = [callback for callback in several if inspect.isfunction(callback)]
    actions_by_function: dict[int, Action[..., Any]] = {}
    for number, function in enumerate(functions, start=1):
        ref = f"{task}_{end}" if len(functions) == 1 else f"{task}_{end}_{number}"
        actions_by_function[id(function)] = _action(end, function, ref, task.rpartition(".")[2], at)
    pack = task.partition(".")[0] if "." in task else None
    replaced = [
        actions_by_function[id(callback)]
        if id(callback) in actions_by_function
        else f"{pack}.{callback}"
        if pack and isinstance(callback, str) and "." not in callback
        else callback
        for callback in several
    ]
    return replaced, list(actions_by_function.values())


def _action(end: str, function: Callable[..., Any], ref: str, task: str, at: Source) -> Action[..., Any]:
    names = ENDS[end]
    source = of_code(inspect.unwrap(function).__code__)
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        raise source.wrong(
            f"{function.__name__} is {end} of task {task}, and does not take {', '.join(names)}",
            f"Write def {function.__name__}({', '.join(names)}): ...",
        ) from None
    return Action(
        ref,
        choices=read_options(ActionOptions, {}, at, f"action {ref}"),
        parameters_schema=_PARAMETERS,
        result_schema=None,
        bind=functools.partial(_bind, end, task),
        source=source,
        function=_called_by_name(function, names),
        description=inspect.getdoc(function) or "",
    )


def _called_by_name(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return `function` wrapped, so that it is called with these argument names, whatever its own parameters are
    called."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call(**arguments: Any) -> Any:
            return _kept(await function(*(arguments[name] for name in names)))

        return call

    @functools.wraps(function)
    def call_plain(**arguments: Any) -> Any:
        return _kept(function(*(arguments[name] for name in names)))

    return call_plain


def _kept(value: Any) -> Any:
    """Return None for a returned context, which has no new values, and any other value unchanged."""
    return None if isinstance(value, Context) else value


def _bind(end: str, task: str, params: Mapping[str, Any]) -> dict[str, Any]:
    parameters = params.get("parameters")
    if not isinstance(parameters, Mapping) or not isinstance(parameters.get("context"), Mapping):
        raise InvalidInput(
            f"the callback of task {task} starts only at the end of its task",
            hint="Start the workflow of the task.",
        )
    result = params.get("result")
    changes = result.get("changes") if isinstance(result, Mapping) else None
    context = Context({**parameters["context"], **(changes if isinstance(changes, Mapping) else {})})
    if end == "on_success":
        return {"task_id": task, "context": context}
    return {"task_id": task, "error": _text_of(params), "context": context}


def _text_of(params: Mapping[str, Any]) -> str:
    """Return the error of an execution as text, or its final status."""
    error = params.get("error")
    if isinstance(error, Mapping) and error.get("message"):
        return str(error["message"])
    return str(error or params.get("status"))
