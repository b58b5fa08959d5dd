"""The server of a command: that of `--server` or of a profile. Without a server the command works on the database
itself."""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.cli import clock
from penstock.cli.command_runner import SERVER, run, with_client, with_session
from penstock.client.server_address import checked_address
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.http_client import HttpClient
    from penstock.store.session.database import Session

    AnyClient = Client | HttpClient
    """The client of a command. A command calls only what both have, with the same names, parameters and records."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    token: str | None


def chosen_server() -> Server | None:
    """Return the server of this command, or None. Raises ConfigurationError for a profile that does not exist."""
    (url, name), token = SERVER.get(), os.environ.get("PENSTOCK_TOKEN") or None
    if url:
        return Server(checked_address(url), token)
    if not name:
        return None
    profile = _profiles().get(name)
    if not isinstance(profile, dict) or not isinstance(profile.get("server"), str):
        raise ConfigurationError(
            f"there is no profile {name!r} with a server in {_file()}",
            hint=f'Write there: [{name}], and below it server = "https://..." and token = "pst_...".',
        )
    return Server(checked_address(profile["server"]), token or profile.get("token"))


def _file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "penstock/profiles.toml"


def _profiles() -> dict[str, Any]:
    try:
        return tomllib.loads(_file().read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{_file()}: {error}", hint="Correct the file: it must be valid TOML."
        ) from None


def over_http(work: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Run `work` with a client of the server, and return its result. Raises ConfigurationError without a server."""
    server = chosen_server()
    if server is None:
        raise ConfigurationError("no server is named", hint="Name the server with --server.")

    async def start() -> T:
        from penstock.client.http_client import HttpClient  # slow to import

        async with HttpClient(server.url, token=server.token) as client:
            client._http.event_hooks["response"] = [clock.note_answer]
            return await work(client)

    return run(start())


def by_either(work: Callable[[AnyClient], Awaitable[T]], *, publishes: bool = True) -> T:
    """Run `work` with the client that this command uses, `Client` or `HttpClient`, and return its result. Without
    `publishes` a `Client` needs no broker."""
    if chosen_server() is not None:
        return over_http(work)
    return with_client(work, either=True, publishes=publishes)


def now() -> datetime:
    """Return the present instant on the installation's clock, for an option that counts from it. If the command has not looked
    at that clock before, it looks now."""
    if not clock.is_noted():
        if chosen_server() is None:
            with_session(_nothing_more)
        else:
            over_http(_any_answer)
    return clock.noted()


async def _any_answer(client: HttpClient) -> None:
    with contextlib.suppress(PenstockError):  # a refusal has the server's time, too
        await client._get("/session")


async def _nothing_more(_: Session) -> None:
    """Do nothing: a command that gets a session has noted the clock."""


def read(work: Callable[[AnyClient], Awaitable[T]]) -> T:
    """Run `work` as `by_either`, without a broker."""
    return by_either(work, publishes=False)
