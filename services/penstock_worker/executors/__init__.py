"""The task executors of a worker, by name. To add one: a class, and one line here or in the worker's
settings.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigurationError, NoExecutor
from penstock.run import capture
from penstock.run.task_executors import RunnableAction, TaskExecutor

if TYPE_CHECKING:
    from penstock.settings import Settings

EXECUTORS = (
    ("async", "penstock_worker.executors.async_:AsyncExecutor"),
    ("thread", "penstock_worker.executors.thread:ThreadExecutor"),
    ("process", "penstock_worker.executors.process:ProcessExecutor"),
    ("command", "penstock_worker.executors.command:CommandExecutor"),
    ("http", "penstock_worker.executors.http:HttpExecutor"),
    ("kubernetes", "penstock_worker.executors.kubernetes:KubernetesExecutor"),
)
"""Named, not imported: a child process that runs one function needs none of them."""

ON_REQUEST = frozenset({"kubernetes"})
"""Only where the worker's settings name them: they need something to be there."""


@asynccontextmanager
async def executors(
    settings: Settings, configured: Mapping[str, Mapping[str, Any] | None] | None = None
) -> AsyncIterator[dict[str, TaskExecutor]]:
    """The task executors of a worker, open, and what actions print and log captured meanwhile.

    `configured` holds options by executor name: `{"process": {"memory_limit": 2**30}, "kubernetes": {}}`.
    `None` leaves one out. Executors of your own have a `class`: `{"gpu": {"class": "acme.gpu:GpuExecutor"}}`.
    A capacity that is not named is the worker's concurrency. Raises ConfigurationError."""
    async with AsyncExitStack() as stack:
        stack.callback(capture.install())
        opened: dict[str, TaskExecutor] = {}
        for name, executor in build(settings.concurrency, configured or {}).items():
            await executor.open()
            stack.push_async_callback(partial(executor.close, settings.grace))
            opened[name] = executor
        yield opened


def build(concurrency: int, configured: Mapping[str, Mapping[str, Any] | None]) -> dict[str, TaskExecutor]:
    """The same, not opened yet."""
    classes = dict(EXECUTORS)
    wanted: dict[str, Mapping[str, Any] | None] = {name: {} for name in classes if name not in ON_REQUEST}
    built: dict[str, TaskExecutor] = {}
    for name, options in {**wanted, **configured}.items():
        if options is None:
            continue
        options = {"capacity": concurrency, **options}
        where = options.pop("class", classes.get(name))
        if where is None:
            raise ConfigurationError(
                f"there is no task executor {name!r}",
                hint=f"Known: {', '.join(classes)}. One of your own needs its class, as module:Class.",
            )
        built[name] = _made(name, where, options)
    return built


def executor_name(action: RunnableAction) -> str:
    """The name of the executor that runs `action`."""
    return action.executor or ("async" if action.is_coroutine else "thread")


def chosen(found: Mapping[str, TaskExecutor], action: RunnableAction) -> TaskExecutor:
    """The executor that runs `action`. Raises NoExecutor if this worker has none of that name."""
    name = executor_name(action)
    try:
        return found[name]
    except KeyError:
        raise NoExecutor(
            f"{action.ref} asks for the task executor {name!r}, which this worker does not have",
            hint="Configure it on this worker, or route the action to a worker that has it.",
        ) from None


def _made(name: str, where: str, options: Mapping[str, Any]) -> TaskExecutor:
    module, _, attribute = where.partition(":")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"the task executor {name!r} cannot be loaded from {where!r}: {error}",
            hint="Name its class as module:Class, in a module that this worker can import.",
        ) from error
    try:
        made: TaskExecutor = make(**options)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the task executor {name!r} refuses its options: {error}", hint="See docs/task-executors.md."
        ) from error
    return made
