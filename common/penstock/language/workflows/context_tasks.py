"""Tasks that share a context. Each is a plain function that names the tasks on which it depends.

    @task(dependencies=[])
    async def extract(context):
        context["rows"] = await fetch(context["day"])

    @task(dependencies=[extract], retry=RetryPolicy(max_attempts=3))
    async def load(context): ...

    etl = workflow("etl", tasks=[extract, load])

A function finds in the context the parameters of the run and the values of the tasks before it. The tasks after it see
the values that it puts there. Of two values of one name the later one in the workflow's order is seen. The workflow's
output is the whole context.

A function may end with `return context`, as the tasks of Cloacina do: it keeps the context as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.errors import InvalidInput
from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.qualified_name import Pack, pack_of, qualified
from penstock.language.terms.options import read_options
from penstock.language.terms.sources import Source, of_code
from penstock.language.workflows import local_callbacks
from penstock.language.workflows.context_task_options import (
    OF_ACTION,
    folded_retry,
    refuse_unknown,
)
from penstock.language.workflows.shared_context import Context
from penstock.language.workflows.task_handle import rule_of
from penstock.run.call_interceptor import CALL_INTERCEPTOR

_PARAMETERS = {
    "type": "object",
    "properties": {"context": {"type": "object"}},
    "required": ["context"],
    "additionalProperties": False,
}


class ContextTask(Action[..., Any]):
    """An action that takes the context as its one parameter, with the tasks on which it depends."""

    plain: Callable[..., Any]
    dependencies: tuple[str, ...] = ()
    task_options: Mapping[str, Any] = {}
    callbacks: tuple[Action[..., Any], ...] = ()
    """The actions made of functions in its `on_success` and `on_failure`."""

    def parts(self) -> Iterator[Any]:
        """Yield the action, its limits, its schedules, and the actions of its local callbacks."""
        yield from super().parts()
        yield from self.callbacks

    def body(self) -> dict[str, Any]:
        """Return the stored body. It also names the callbacks that receive the task's parameters."""
        refs = [callback.ref for callback in self.callbacks]
        return super().body() | ({"local_callbacks": refs} if refs else {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, with any mapping as the context."""
        if CALL_INTERCEPTOR.get() is not None:
            return super().__call__(*args, **kwargs)
        return self.plain(*args, **kwargs)

    def task(self) -> dict[str, Any]:
        """Return the task for a workflow document."""
        return {
            "name": self.task_name,
            "action": self.ref,
            "input": {"context": "{{ context }}"},
            "publish": "{{ result.changes }}",
            **({"needs": list(self.dependencies)} if self.dependencies else {}),
            **self.task_options,
        }

    @property
    def task_name(self) -> str:
        return self.name


def context_task(
    source: Source,
    *,
    id: str | None = None,
    dependencies: Any = (),
    trigger_rule: Any = None,
    trigger_rules: Any = None,
    ref: str | None = None,
    pack: str | Pack | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], ContextTask]:
    """Return the decorator of a context task; see `penstock.task`."""

    def declare(function: Callable[..., Any]) -> ContextTask:
        plain = inspect.unwrap(function)
        at = of_code(plain.__code__)
        pack_name = pack.name if isinstance(pack, Pack) else pack
        declared = None if pack_name else pack_of(plain.__globals__)
        pack_name = pack_name or (declared.name if declared else None)
        name = qualified(_name(id, ref, at) or plain.__name__, pack_name)
        if len(inspect.signature(function).parameters) != 1:
            raise at.wrong(f"task {name} does not take one argument", "Write def name(context): ...")
        if trigger_rule is not None and trigger_rules is not None:
            raise at.wrong(f"task {name} has trigger_rule and trigger_rules", "Write one of them.")
        refuse_unknown(name, options, at)
        folded = folded_retry(name, options, at)
        callbacks: list[Action[..., Any]] = []
        for end in local_callbacks.ENDS:
            if end in folded:
                folded[end], callback_actions = local_callbacks.actions(end, folded[end], name, at)
                callbacks += callback_actions
        of_action = {key: value for key, value in folded.items() if key in OF_ACTION}
        task = ContextTask(
            name,
            choices=read_options(ActionOptions, of_action, at, f"action {name}"),
            parameters_schema=_PARAMETERS,
            result_schema=None,
            bind=_bind,
            source=at,
            function=_with_context(function),
            description=inspect.getdoc(plain) or "",
        )
        task.plain = function
        task.callbacks = tuple(callbacks)
        task.dependencies = _dependencies(dependencies, name, at)
        task.task_options = {key: value for key, value in folded.items() if key not in OF_ACTION}
        rule = trigger_rules if trigger_rule is None else trigger_rule
        if rule is not None:
            task.task_options = {**task.task_options, "when": rule_of(rule)}
        return task

    return declare


def _name(id: str | None, ref: str | None, at: Source) -> str | None:
    if id is None or ref is None:
        return ref if id is None else _checked_id(id, at)
    raise at.wrong(f"the task {id!r} has an id and a ref", "Write id='name', or ref='pack.name'.")


def _checked_id(id: object, at: Source) -> str:
    if isinstance(id, str) and "." not in id:
        return id
    raise at.wrong(
        f"{id!r} is not the id of a task", "Write id='extract', or with its pack ref='etl.extract'."
    )


def _dependencies(dependencies: Any, name: str, at: Source) -> tuple[str, ...]:
    """Return the names of the tasks on which a task depends. Raises DefinitionError for a value that is neither a task
    nor a name."""
    is_several = isinstance(dependencies, list | tuple | set | frozenset)
    several: list[Any] = list(dependencies) if is_several else [dependencies]
    for dependency in several:
        if not isinstance(dependency, str | ContextTask):
            raise at.wrong(
                f"task {name} depends on {dependency!r}, which is not a task",
                "Write the function under @task, or its name: dependencies=['extract'].",
            )
    return tuple(
        dependency if isinstance(dependency, str) else dependency.task_name for dependency in several
    )


def _bind(params: Mapping[str, Any]) -> dict[str, Any]:
    if set(params) != {"context"} or not isinstance(params["context"], Mapping):
        raise InvalidInput(
            "a context task takes one parameter, `context`", hint="Start its workflow instead."
        )
    return {"context": Context(params["context"])}


def _with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` wrapped. The wrapped function returns the changes in the context, and the function's own
    result."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run(context: Context) -> dict[str, Any]:
            return _outcome(context, await function(context))

        return run

    @functools.wraps(function)
    def run_plain(context: Context) -> dict[str, Any]:
        return _outcome(context, function(context))

    return run_plain


def _outcome(context: Context, value: Any) -> dict[str, Any]:
    """Return the changes of the context, and the function's result. A returned context changes nothing more, and is not
    a result."""
    if isinstance(value, Context):
        if value is not context:
            context.update(value)
        value = None
    return {"changes": context.changes, "value": value}
