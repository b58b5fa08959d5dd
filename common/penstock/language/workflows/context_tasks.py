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
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

from penstock.errors import InvalidInput
from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.qualified_name import Pack, pack_of, qualified
from penstock.language.terms.options import read_options
from penstock.language.terms.sources import Source, of_code
from penstock.language.workflows.task_handle import rule_of
from penstock.run.call_interceptor import CALL_INTERCEPTOR

_OF_ACTION = frozenset(ActionOptions.names()) - {"limits"}
"""The options of a context task that go to its action. All others go to the task."""
_PARAMETERS = {
    "type": "object",
    "properties": {"context": {"type": "object"}},
    "required": ["context"],
    "additionalProperties": False,
}


class Context(MutableMapping[str, Any]):
    """The context that tasks pass on to each other: JSON values by name. A name cannot be removed; set it to None to
    empty it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._before = dict(values)
        self._values = deepcopy(self._before)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a name in the context is text, not {name!r}")
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name!r} cannot be taken out of the context; set it to None")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def insert(self, name: str, value: Any) -> None:
        """Insert a new name. Raises KeyError if it exists."""
        if name in self._values:
            raise KeyError(f"{name!r} is in the context already; set it with context[{name!r}] = ...")
        self[name] = value

    @property
    def changes(self) -> dict[str, Any]:
        """Return the values that are new or changed."""
        unset = object()
        return {
            name: value
            for name, value in self._values.items()
            if (old := self._before.get(name, unset)) != value or type(old) is not type(value)
        }


class ContextTask(Action[..., Any]):
    """An action that takes the context as its one parameter, with the tasks on which it depends."""

    plain: Callable[..., Any]
    dependencies: tuple[str, ...] = ()
    task_options: Mapping[str, Any] = {}

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
    dependencies: Any = (),
    trigger_rule: Any = None,
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
        name = qualified(ref or plain.__name__, pack_name or (declared.name if declared else None))
        if len(inspect.signature(function).parameters) != 1:
            raise at.wrong(f"task {name} does not take one argument", "Write def name(context): ...")
        of_action = {key: value for key, value in options.items() if key in _OF_ACTION}
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
        several = [dependencies] if isinstance(dependencies, str | ContextTask) else dependencies
        task.dependencies = tuple(
            dependency if isinstance(dependency, str) else dependency.task_name for dependency in several
        )
        task.task_options = {key: value for key, value in options.items() if key not in _OF_ACTION}
        if trigger_rule is not None:
            task.task_options = {**task.task_options, "when": rule_of(trigger_rule)}
        return task

    return declare


def _bind(params: Mapping[str, Any]) -> dict[str, Any]:
    if set(params) != {"context"} or not isinstance(params["context"], Mapping):
        raise InvalidInput(
            "a context task takes one parameter, `context`", hint="Start its workflow instead."
        )
    return {"context": Context(params["context"])}


def _with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` wrapped. It returns the changes in the context, and the function's own result."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run(context: Context) -> dict[str, Any]:
            value = await function(context)
            return {"changes": context.changes, "value": value}

        return run

    @functools.wraps(function)
    def run_plain(context: Context) -> dict[str, Any]:
        value = function(context)
        return {"changes": context.changes, "value": value}

    return run_plain
