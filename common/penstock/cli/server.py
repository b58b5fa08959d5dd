"""The server of a command: that of `--server` or of a profile. Without a server the command works on the database
itself."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from penstock.cli.command_runner import SERVER, run, with_client, with_session
from penstock.client.server_address import checked_address
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.http_client import HttpClient
    from penstock.client.rule_replays import ReplayPage
    from penstock.store.session.database import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    token: str | None


class Holding(Protocol):
    """The operations on holds that both clients have."""

    async def hold(
        self, kind: str, name: str, *, by: str, reason: str | None = ..., until: datetime | None = ...
    ) -> None: ...

    async def release(self, kind: str, name: str, rate: str | None = ...) -> None: ...


class Breaking(Protocol):
    """The operations on breakers that both clients have."""

    async def open(
        self,
        ref: str,
        parameters: Mapping[str, Any] | None = ...,
        *,
        by: str,
        reason: str | None = ...,
        until: datetime | None = ...,
    ) -> None: ...

    async def close(
        self, ref: str, parameters: Mapping[str, Any] | None = ..., *, at_once: bool = ...
    ) -> None: ...


class Steering(Protocol):
    """The methods that both `Client` and `HttpClient` have and that commands need."""

    async def cancel(self, *ids: UUID, reason: str = ...) -> int: ...

    @property
    def holds(self) -> Holding: ...

    @property
    def breakers(self) -> Breaking: ...

    async def set_priority(self, id: UUID, priority: int) -> int: ...
    async def reschedule(
        self,
        id: UUID,
        *,
        at: datetime | None = ...,
        delay: float | timedelta | None = ...,
        by: str,
        reason: str | None = ...,
    ) -> datetime: ...
    async def raise_budget(self, id: UUID, unit: str, amount: float) -> None: ...
    async def rerun(
        self,
        id: UUID,
        *,
        from_failed: bool = ...,
        from_task: str | None = ...,
        params: Mapping[str, Any] | None = ...,
        unset: Sequence[str] = ...,
        by: str,
        reason: str | None = ...,
    ) -> UUID: ...
    async def replay_rule(
        self,
        ref: str,
        *,
        since: datetime,
        until: datetime | None = ...,
        tenant: str | None = ...,
        dry_run: bool = ...,
        cursor: UUID | None = ...,
    ) -> ReplayPage: ...
    async def command(
        self,
        id: UUID,
        kind: str,
        *,
        task: str | None = ...,
        value: Any = ...,
        by: str,
        reason: str | None = ...,
    ) -> None: ...
    async def answer(self, id: UUID, response: Any, *, by: str) -> None: ...
    async def signal(self, id: UUID, name: str, value: Any = ...) -> None: ...
    async def publish(
        self,
        trigger: str,
        payload: Any = ...,
        *,
        key: str | None = ...,
        tenant: str = ...,
        max_depth: int | None = ...,
        max_descendants: int | None = ...,
    ) -> UUID: ...


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
        raise ConfigurationError(f"{_file()}: {error}", hint="It is a file in TOML.") from None


def over_http(work: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Run `work` with a client of the server, and return its result. Raises ConfigurationError without a server."""
    server = chosen_server()
    if server is None:
        raise ConfigurationError("no server is named", hint="Name it with --server.")

    async def start() -> T:
        from penstock.client.http_client import HttpClient  # slow to import

        async with HttpClient(server.url, token=server.token) as client:
            return await work(client)

    return run(start())


def by_either(work: Callable[[Steering], Awaitable[T]]) -> T:
    """Run `work` with the client that this command uses, `Client` or `HttpClient`, and return its result."""
    return over_http(work) if chosen_server() is not None else with_client(work, either=True)


def read(of_session: Callable[[Session], Awaitable[T]], of_server: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Run `of_server` with a client of the server, if one is chosen. Otherwise run `of_session`, which needs no
    broker."""
    return over_http(of_server) if chosen_server() is not None else with_session(of_session, either=True)


def done(of_client: Callable[[Client], Awaitable[T]], of_server: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Run `of_server` with a client of the server, if one is chosen. Otherwise run `of_client`, on the database."""
    return over_http(of_server) if chosen_server() is not None else with_client(of_client, either=True)
