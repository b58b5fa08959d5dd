"""The registry of task executors that a worker's modules bring along, besides those that its settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigurationError
from penstock.run.task_executors import TaskExecutor


@dataclass(frozen=True, slots=True)
class RegisteredExecutor:
    """The factory of an executor, and its options if the settings have none."""

    make: Callable[..., TaskExecutor]
    options: dict[str, Any]


REGISTERED: dict[str, RegisteredExecutor] = {}


def register_executor(key: str, make: Callable[..., TaskExecutor], **options: Any) -> None:
    """Register a task executor named `key` for `@action(executor=key)`, in every worker that imports the calling
    module.

    `make` is its class or a factory. A starting worker calls it with `options`, and with a `capacity` of the worker's
    concurrency if `options` has none. PENSTOCK_EXECUTORS may give it other options, or disable it. Raises
    ConfigurationError if the name is taken by another executor.
    """
    registered = REGISTERED.get(key)
    if registered is not None and _origin(registered.make) != _origin(make):
        raise ConfigurationError(
            f"the task executor {key!r} is registered twice: as {_origin(registered.make)} and as {_origin(make)}",
            hint="Give each of them a name of its own.",
        )
    REGISTERED[key] = RegisteredExecutor(make, options)


def _origin(make: Callable[..., Any]) -> str:
    """Return the origin of the factory, which is equal if its module is imported again."""
    return f"{make.__module__}:{make.__qualname__}"
