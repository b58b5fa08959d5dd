"""The parts of the HTTP client for limits, breakers, holds, rules, saved views, schedules and workers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, TypeAdapter

from penstock.client.argument_ranges import check_version
from penstock.client.checked_arguments import checks_arguments
from penstock.client.http_encoding import segment
from penstock.store.access.saved_views import SavedView
from penstock.store.admission.breakers import BreakerState
from penstock.store.admission.holds import Hold
from penstock.store.admission.limits import TOTALS_HOURS, LimitInForce, LimitTotals
from penstock.store.processes.processes import Process
from penstock.store.schedules.reading import ScheduleSummary

Ask = Callable[..., Coroutine[Any, Any, Any]]
"""The function that sends a request: a method, a path, and a body or None."""

AT_FIRST_USE = ConfigDict(defer_build=True)
"""The configuration of a type that is built at its first use. A command reads at most two of them."""

_HOLDS = TypeAdapter(list[Hold], config=AT_FIRST_USE)
_VIEWS = TypeAdapter(list[SavedView], config=AT_FIRST_USE)
_BREAKERS = TypeAdapter(list[BreakerState], config=AT_FIRST_USE)
_LIMITS = TypeAdapter(list[LimitInForce], config=AT_FIRST_USE)
_TOTALS = TypeAdapter(list[LimitTotals], config=AT_FIRST_USE)
_SCHEDULES = TypeAdapter(list[ScheduleSummary], config=AT_FIRST_USE)
_PROCESSES = TypeAdapter(list[Process], config=AT_FIRST_USE)


@checks_arguments
class HttpLimits:
    """The limits over HTTP, as `Client.limits`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[LimitInForce]:
        """Return all limits that are in force, by ref."""
        return _LIMITS.validate_python(await self._ask("GET", "/limits"))

    async def totals(self, ref: str | None = None, *, hours: float = TOTALS_HOURS) -> list[LimitTotals]:
        """Count the attempts of each limit, or of one limit, as `Limits.totals`. Raises NotFound if the limit does not
        exist, and InvalidInput if `hours` is not above 0 and at most 24."""
        refs = [limit.ref for limit in await self.all()] if ref is None else [ref]
        paths = [f"/limits/{segment(name)}/totals?hours={hours}" for name in refs]
        return _TOTALS.validate_python([await self._ask("GET", path) for path in paths])

    async def set(self, /, ref: str, **options: Any) -> LimitInForce:
        """Change a limit, or create one. Raises InvalidInput if an option is not valid."""
        return _LIMITS.validate_python([await self._ask("PATCH", f"/limits/{segment(ref)}", options)])[0]

    async def remove(self, ref: str) -> LimitInForce | None:
        """Undo the manual change of a limit. Return the limit that is then in force, or None. Raises NotFound if the
        limit does not exist."""
        limit = (await self._ask("DELETE", f"/limits/{segment(ref)}"))["in_force"]
        return None if limit is None else _LIMITS.validate_python([limit])[0]


@checks_arguments
class HttpHolds:
    """The holds over HTTP, as `Client.holds`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[Hold]:
        return _HOLDS.validate_python(await self._ask("GET", "/holds"))

    async def hold(
        self,
        kind: str,
        name: str,
        *,
        by: str = "",
        reason: str | None = None,
        until: datetime | None = None,
        force: bool = False,
    ) -> None:
        """Hold an action, a pack, a route or a tenant. With `force` the name may be unknown so far. The server knows
        the caller, and `by` is not sent. Raises InvalidInput if `kind` or `name` is not valid, and NotFound for an
        unknown name without `force`."""
        body = {"kind": kind, "name": name, "reason": reason, "until": until}
        await self._ask("POST", "/holds", body | ({"force": True} if force else {}))

    async def release(self, kind: str, name: str, rate: str | None = None) -> None:
        """Release what is held: at once, or at a rate. Raises NotFound if there is no such hold, and InvalidInput if
        `kind`, `name` or `rate` is not valid."""
        await self._ask("POST", "/holds/release", {"kind": kind, "name": name, "rate": rate})


@checks_arguments
class HttpViews:
    """The saved views over HTTP, as `Client.views`. The server knows the caller, and `by` is not sent."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self, *, by: str = "") -> list[SavedView]:
        """Return the views of the caller, and the shared ones that it may see, by name."""
        return _VIEWS.validate_python(await self._ask("GET", "/views"))

    async def get(self, name: str, *, by: str = "") -> SavedView:
        """Return the view of this name or id, as `Views.get`. Raises NotFound and Conflict."""
        return _VIEWS.validate_python([await self._ask("GET", f"/views/named?name={segment(name)}")])[0]

    async def create(
        self,
        name: str,
        filters: Mapping[str, Any],
        *,
        by: str = "",
        description: str | None = None,
        shared: bool = False,
        replace: bool = False,
    ) -> SavedView:
        """Save a view of the caller. A shared one needs the scope `operate`. With `replace` it takes the place of the
        caller's view of that name, if there is one. Raises InvalidInput, NotAllowed and Conflict."""
        body = {
            "name": name,
            "filters": filters,
            "description": description,
            "shared": shared,
            "replace": replace,
        }
        return _VIEWS.validate_python([await self._ask("POST", "/views", body)])[0]

    async def update(
        self,
        id: UUID,
        version: int,
        *,
        by: str = "",
        name: str | None = None,
        filters: Mapping[str, Any] | None = None,
        description: str | None = None,
        shared: bool | None = None,
    ) -> SavedView:
        """Change a view, as `Views.update`. Raises InvalidInput, NotFound, NotAllowed and Conflict."""
        check_version(version)
        changes = {"name": name, "filters": filters, "description": description, "shared": shared}
        body = {"version": version, **{key: value for key, value in changes.items() if value is not None}}
        return _VIEWS.validate_python([await self._ask("PATCH", f"/views/{id}", body)])[0]

    async def delete(self, id: UUID, *, by: str = "") -> None:
        """Delete a view. Raises NotFound and NotAllowed."""
        await self._ask("DELETE", f"/views/{id}")


@checks_arguments
class HttpBreakers:
    """The breakers over HTTP, as `Client.breakers`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[BreakerState]:
        return _BREAKERS.validate_python(await self._ask("GET", "/breakers"))

    async def open(
        self,
        ref: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        by: str = "",
        reason: str | None = None,
        until: datetime | None = None,
    ) -> None:
        """Open a breaker by hand. The server knows the caller, and `by` is not sent. Raises NotFound if the action has
        no breaker. Raises InvalidInput if `parameters` are not exactly those that its `by` names, or if `until` is not a
        future instant."""
        body = {"ref": ref, "parameters": parameters, "reason": reason, "until": until}
        await self._ask("POST", "/breakers/open", body)

    async def close(
        self, ref: str, parameters: Mapping[str, Any] | None = None, *, at_once: bool = False
    ) -> None:
        """Close a breaker. Raises NotFound if the action has no breaker, and Conflict if the breaker is closed. Raises
        InvalidInput if `parameters` are not exactly those that its `by` names."""
        body = {"ref": ref, "parameters": parameters, "at_once": at_once}
        await self._ask("POST", "/breakers/close", body)


@checks_arguments
class HttpRules:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[dict[str, Any]]:
        """Return the rules, each with the number of events on which it failed."""
        rules: list[dict[str, Any]] = await self._ask("GET", "/rules")
        return rules

    async def enable(self, ref: str, enabled: bool) -> None:
        """Enable or disable a rule. Raises NotFound if the rule does not exist."""
        await self._ask("POST", f"/rules/{segment(ref)}/{'enable' if enabled else 'disable'}", {})

    async def delete(self, ref: str) -> None:
        """Delete a rule. Raises NotFound if the rule does not exist."""
        await self._ask("DELETE", f"/rules/{segment(ref)}")


@checks_arguments
class HttpSchedules:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[ScheduleSummary]:
        """Return all schedules, by ref."""
        return _SCHEDULES.validate_python(await self._ask("GET", "/schedules"))

    async def enable(self, ref: str) -> ScheduleSummary:
        """Enable a schedule: it fires from now on. Raises NotFound if the schedule does not exist."""
        return await self._change(ref, "enable", {})

    async def disable(self, ref: str) -> ScheduleSummary:
        """Disable a schedule: it does not fire until it is enabled again. Raises NotFound if the schedule does not
        exist."""
        return await self._change(ref, "disable", {})

    async def pause(self, ref: str, seconds: float) -> ScheduleSummary:
        """Pause a schedule for `seconds`, in which it does not fire. Raises NotFound if the schedule does not exist."""
        return await self._change(ref, "pause", {"seconds": seconds})

    async def _change(self, ref: str, action: str, body: Any) -> ScheduleSummary:
        row = await self._ask("POST", f"/schedules/{segment(ref)}/{action}", body)
        return _SCHEDULES.validate_python([row])[0]


@checks_arguments
class HttpWorkers:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self, *, fresh: bool = False) -> list[Process]:
        """Return the executors and workers. With `fresh`, leave out dead processes, and processes with an overdue
        heartbeat."""
        return _PROCESSES.validate_python(
            await self._ask("GET", "/workers?fresh=true" if fresh else "/workers")
        )

    async def named(self, name: str) -> list[Process]:
        """Return the workers of this name, dead ones included. Raises NotFound if no worker has it."""
        return _PROCESSES.validate_python(await self._ask("GET", f"/workers/{segment(name)}"))

    async def cordon(self, names: Sequence[str], cordoned: bool) -> list[str]:
        """Cordon workers, so that they take no new work, or undo it. Return their names. Raises NotFound at the first
        name without an active worker or, with `cordoned=False`, without a cordoned one."""
        changed: list[str] = []
        for name in names:
            path = f"/workers/{segment(name)}/{'cordon' if cordoned else 'uncordon'}"
            changed += (await self._ask("POST", path, {}))["names"]
        return changed
