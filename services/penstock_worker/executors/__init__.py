"""The task executors of a worker, by name. To add one, write a class, and name it in one line here or in the worker's
settings. Code can register it (`register_executor`), and a package has an entry point (`penstock.executors`)."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigurationError, NoExecutor
from penstock.extras import missing_package
from penstock.language.terms.executor_names import PACKAGES
from penstock.language.terms.redaction import LIVE
from penstock.run import capture
from penstock.run.executor_registry import REGISTERED
from penstock.run.run import executor_name
from penstock.run.task_executors import RunnableAction, TaskExecutor

if TYPE_CHECKING:
    from penstock.settings import Settings

EXECUTORS = (
    ("async", "penstock_worker.executors.python.async_:AsyncExecutor"),
    ("thread", "penstock_worker.executors.python.thread:ThreadExecutor"),
    ("process", "penstock_worker.executors.python.process:ProcessExecutor"),
    ("command", "penstock_worker.executors.processes.command:CommandExecutor"),
    ("http", "penstock_worker.executors.http.http:HttpExecutor"),
    ("kubernetes", "penstock_worker.executors.kubernetes.kubernetes:KubernetesExecutor"),
)
"""The built-in executors. An executor is imported by name when it is used, since a child process that runs one function
needs none of them."""

ON_REQUEST = frozenset({"kubernetes"})
"""The built-in executors that exist only if the worker's settings name them, since they need a cluster."""

ENTRY_POINTS = "penstock.executors"
"""The group of entry points that name the executors of other packages. These exist only if the worker's settings name
them."""


@asynccontextmanager
async def executors(
    settings: Settings, configured: Mapping[str, Mapping[str, Any] | None] | None = None
) -> AsyncIterator[dict[str, TaskExecutor]]:
    """Open the task executors of a worker, and capture what actions print and log.

    `configured` holds options by executor name: `{"process": {"memory_limit": 2**30}, "kubernetes": {}}`. `None`
    disables one. Your own executors have a `class` (`{"gpu": {"class": "acme.gpu:GpuExecutor"}}`), were registered by
    the worker's modules, or have an entry point. The default capacity is the worker's concurrency. Raises
    ConfigurationError for an option that is not valid, or a route with an executor that is not there.
    """
    built = build(settings.concurrency, configured or {})
    for route, name in settings.route_executors.items():
        if name not in built:
            raise ConfigurationError(
                f"the setting for the route {route} names the task executor {name!r}, which this worker does not have",
                hint=f"It has {', '.join(built)}: see PENSTOCK_EXECUTORS and PENSTOCK_ROUTE_EXECUTORS.",
            )
    async with AsyncExitStack() as stack:
        stack.callback(capture.install(mask=LIVE.mask))
        opened: dict[str, TaskExecutor] = {}
        for name, executor in built.items():
            await executor.open()
            stack.push_async_callback(partial(executor.close, settings.grace))
            opened[name] = executor
        yield opened


def build(concurrency: int, configured: Mapping[str, Mapping[str, Any] | None]) -> dict[str, TaskExecutor]:
    """Return the task executors, not opened yet."""
    classes: dict[str, str | Callable[..., TaskExecutor]] = dict(EXECUTORS)
    defaults: dict[str, Mapping[str, Any] | None] = {name: {} for name in classes if name not in ON_REQUEST}
    for name, registered in REGISTERED.items():
        if name in classes or name in PACKAGES:
            raise ConfigurationError(
                f"Penstock itself has a task executor {name!r}",
                hint="Register your task executor under another name.",
            )
        classes[name], defaults[name] = registered.make, registered.options
    built: dict[str, TaskExecutor] = {}
    for name, options in {**defaults, **configured}.items():
        if options is None:
            continue
        own_options = {"capacity": concurrency, **(defaults.get(name) or {}), **options}
        make = own_options.pop("class", classes.get(name)) or _installed(name)
        if make is None:
            raise ConfigurationError(
                f"there is no task executor {name!r}",
                hint=f"Known: {', '.join([*classes, *PACKAGES])}. A task executor of your own needs its class "
                "as module:Class, a call of register_executor, or an entry point.",
            )
        built[name] = _made(name, _loaded(name, make) if isinstance(make, str) else make, own_options)
    return built


def chosen(
    executors: Mapping[str, TaskExecutor], action: RunnableAction, of_route: str | None = None
) -> TaskExecutor:
    """Return the executor that runs `action`. `of_route` is the executor of its route, if one is configured. Raises
    NoExecutor if this worker has none of that name."""
    name = executor_name(action, of_route)
    try:
        return executors[name]
    except KeyError:
        raise NoExecutor(
            f"{action.ref} asks for the task executor {name!r}, which this worker does not have",
            hint="Configure it on this worker, or route the action to a worker that has it.",
        ) from None


def _installed(name: str) -> str | None:
    """Return the place of a task executor of an installed package, or None. Raises MissingExtra for one of ours whose
    package is not installed."""
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return str(entry.value)
    if name in PACKAGES:
        raise missing_package(PACKAGES[name])
    return None


def _loaded(name: str, where: str) -> Callable[..., TaskExecutor]:
    module, _, attribute = where.partition(":")
    try:
        factory: Callable[..., TaskExecutor] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"the task executor {name!r} cannot be loaded from {where!r}: {error}",
            hint="Set its class as module:Class, in a module that this worker can import.",
        ) from error
    return factory


def _made(name: str, make: Callable[..., TaskExecutor], options: Mapping[str, Any]) -> TaskExecutor:
    try:
        return make(**options)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the task executor {name!r} refuses its options: {error}", hint="See docs/task-executors.md."
        ) from error
