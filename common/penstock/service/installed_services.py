"""The services that are installed with this command, found by their entry points: `common` imports none of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib.metadata import entry_points
from typing import Any

from penstock.errors import ConfigurationError

Service = Callable[..., Coroutine[Any, Any, None]]
"""`service(settings, stop)` runs until it is asked to stop. The API also accepts a listening socket."""


def service(name: str) -> Service:
    """Return an installed service by name. Raises ConfigurationError if it is not installed."""
    for entry in entry_points(group="penstock.services"):
        if entry.name == name:
            loaded: Service = entry.load()
            return loaded
    raise ConfigurationError(f"the {name} service is not installed", hint="Install Penstock again with pip.")
