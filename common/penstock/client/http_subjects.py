"""Limits, rules, schedules and workers over HTTP: a part of the client over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

import orjson
from pydantic import TypeAdapter

from penstock.client.checked_arguments import checks_arguments
from penstock.client.http_words import segment, text_of
from penstock.store.admission.limits import LimitInForce
from penstock.store.processes.processes import Process

Ask = Callable[..., Coroutine[Any, Any, Any]]
"""Asks the API: a method, a path, and a body or None."""

_LIMITS = TypeAdapter(list[LimitInForce])
_PROCESSES = TypeAdapter(list[Process])


@checks_arguments
class HttpLimits:
    """The limits over HTTP, as `Client.limits`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def in_force(self) -> list[LimitInForce]:
        return _limits(await self._ask("GET", "/limits"))

    async def set(self, /, ref: str, **options: Any) -> LimitInForce:
        """Change a limit, or make one. Raises InvalidInput."""
        return _limits([await self._ask("PATCH", f"/limits/{segment(ref)}", options)])[0]

    async def remove(self, ref: str) -> LimitInForce | None:
        """Take back what was set by hand; what is in force then. Raises NotFound."""
        limit = (await self._ask("DELETE", f"/limits/{segment(ref)}"))["in_force"]
        return None if limit is None else _limits([limit])[0]


@checks_arguments
class HttpRules:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[dict[str, Any]]:
        """Rules, and on how many events each has failed."""
        rules: list[dict[str, Any]] = await self._ask("GET", "/rules")
        return rules

    async def enable(self, ref: str, enabled: bool) -> None:
        """Let it match again, or nothing. Raises NotFound."""
        await self._ask("POST", f"/rules/{segment(ref)}/{'enable' if enabled else 'disable'}", {})

    async def delete(self, ref: str) -> None:
        """Raises NotFound."""
        await self._ask("DELETE", f"/rules/{segment(ref)}")


@checks_arguments
class HttpSchedules:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[dict[str, Any]]:
        """Return all limits as the API shows them, with datetimes for instants."""
        return [_instants(row) for row in await self._ask("GET", "/schedules")]

    async def enable(self, ref: str) -> dict[str, Any]:
        """Let it fire again, from now on. Raises NotFound."""
        return _instants(await self._ask("POST", f"/schedules/{segment(ref)}/enable", {}))

    async def disable(self, ref: str) -> dict[str, Any]:
        """Let it fire nothing until it is enabled again. Raises NotFound."""
        return _instants(await self._ask("POST", f"/schedules/{segment(ref)}/disable", {}))

    async def pause(self, ref: str, seconds: float) -> dict[str, Any]:
        """Let it fire nothing for so many seconds. Raises NotFound."""
        return _instants(await self._ask("POST", f"/schedules/{segment(ref)}/pause", {"seconds": seconds}))


@checks_arguments
class HttpWorkers:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[Process]:
        """Executors and workers that live."""
        return processes_of(await self._ask("GET", "/workers"))

    async def named(self, name: str) -> list[Process]:
        """Raises NotFound."""
        return processes_of(await self._ask("GET", f"/workers/{segment(name)}"))

    async def cordon(self, names: Sequence[str], cordoned: bool) -> list[str]:
        """Let them take no new work, or again; their names. Raises NotFound."""
        changed: list[str] = []
        for name in names:
            path = f"/workers/{segment(name)}/{'cordon' if cordoned else 'uncordon'}"
            changed += (await self._ask("POST", path, {}))["names"]
        return changed


def _limits(rows: Sequence[dict[str, Any]]) -> list[LimitInForce]:
    return _LIMITS.validate_python([{**row, "declared": text_of(row["declared"])} for row in rows])


def processes_of(rows: Sequence[dict[str, Any]]) -> list[Process]:
    """Processes, of what the API says of them."""
    texts = ("labels", "executors")
    return _PROCESSES.validate_python(
        [{**row, **{name: orjson.dumps(row[name]).decode() for name in texts}} for row in rows]
    )


def _instants(row: dict[str, Any]) -> dict[str, Any]:
    due = {name: row[name] and datetime.fromisoformat(row[name]) for name in ("next_due", "last_due")}
    return {**row, **due}
