"""Task executors that the code of a worker brings along, beside those that its settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigurationError
from penstock.run.task_executors import TaskExecutor


@dataclass(frozen=True, slots=True)
class RegisteredExecutor:
    """The factory of an executor, and its default options where the settings have none."""

    make: Callable[..., TaskExecutor]
    options: dict[str, Any]


REGISTERED: dict[str, RegisteredExecutor] = {}


def register_executor(key: str, make: Callable[..., TaskExecutor], **options: Any) -> None:
    """Let the workers that import this module have a task executor of the name `key`, for `@action(executor=key)`.

    `make` is its class, or a function that gives one; it is called with `options` when a worker starts, and with a
    `capacity` of the worker's concurrency where they name none. PENSTOCK_EXECUTORS may give it other options, or leave it out.
    Raises ConfigurationError if the name is given to something else already."""
    registered = REGISTERED.get(key)
    if registered is not None and _origin(registered.make) != _origin(make):
        raise ConfigurationError(
            f"the task executor {key!r} is registered twice: as {_origin(registered.make)} and as {_origin(make)}",
            hint="Give each of them a name of its own.",
        )
    REGISTERED[key] = RegisteredExecutor(make, options)


def _origin(make: Callable[..., Any]) -> str:
    """Return the origin of the factory, for a module that is imported again."""
    return f"{make.__module__}:{make.__qualname__}"
