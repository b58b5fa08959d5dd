"""The path below which a proxy serves the API, such as `/penstock`. The path is removed from requests, and prefixed to
addresses in answers."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import ConfigurationError
from penstock.settings import Settings

_path: ContextVar[str] = ContextVar("public path", default="")


def base() -> str:
    """Return that path for the current request, without a slash at its end. The path is empty in most installations."""
    return _path.get()


def path_of(settings: Settings, routes: Iterable[str]) -> str:
    """Return the path of PENSTOCK_API_ADDRESS. Raises ConfigurationError if one of our routes begins like it.

    A proxy may remove the path or not. Both work only if no route begins with it.
    """
    path = urlsplit(settings.api_address or "").path.rstrip("/")
    first = path.split("/")[1:2]
    if first and first[0] in {route.split("/")[1] for route in routes}:
        raise ConfigurationError(
            f"the path {path} of PENSTOCK_API_ADDRESS begins like that of a page or a route of Penstock",
            hint="Choose another path, such as /penstock.",
        )
    return path


def enter(path: str, scope: Any) -> Any:
    """Return the scope of a request without the path, if the proxy left it in."""
    _path.set(path)
    if path and (scope["path"] == path or scope["path"].startswith(f"{path}/")):
        inside = scope["path"][len(path) :] or "/"
        return {**scope, "path": inside, "raw_path": inside.encode()}
    return scope


def leave(path: str, send: Any) -> Any:
    """Return a `send` that prefixes the path to the address of a redirect."""
    if not path:
        return send

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, path.encode() + value)
                if name.lower() == b"location" and value[:1] == b"/" != value[1:2]
                else (name, value)
                for name, value in message.get("headers", ())
            ]
        await send(message)

    return sent
