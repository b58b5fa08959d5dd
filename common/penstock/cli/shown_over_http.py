"""The output of `show` from the API's answer, with instants and tasks as the database returns them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock.errors import InvalidInput, NotFound
from penstock.language.workflows.progress import TaskProgress

if TYPE_CHECKING:
    from penstock.client.http_client import HttpClient

INSTANTS = ("created_at", "ready_at", "since", "not_before", "finished_at")


async def described_over_http(client: HttpClient, id: UUID) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An execution, or an event and what rules made of it. Raises NotFound."""
    try:
        return _execution(await client.described(id)), []
    except NotFound:
        try:
            event = await client.get_json(f"/events/{id}")
        except (NotFound, InvalidInput):
            raise NotFound(
                f"no execution and no event {id}", hint="`penstock executions` lists the newest."
            ) from None
    return {**event, "created_at": datetime.fromisoformat(event["created_at"])}, event.pop("rules")


def _execution(found: dict[str, Any]) -> dict[str, Any]:
    instants = {name: _instant(found[name]) for name in INSTANTS}
    attempts = [
        {
            **one,
            "started_at": _instant(one["started_at"]),
            "ended_at": _instant(one["ended_at"]),
            "duration": None if one["duration"] is None else timedelta(seconds=one["duration"]),
        }
        for one in found["attempts"]
    ]
    told = [
        {**one, "created_at": _instant(one["created_at"]), "obeyed_at": _instant(one["obeyed_at"])}
        for one in found["told"]
    ]
    item = -1 if found["item"] is None else found["item"]
    tasks = [_task(task) for task in found["tasks"]]
    return {
        **found,
        **instants,
        "item": item,
        "attempts": attempts,
        "told": told,
        "tasks": tasks,
        "graph": found if tasks else None,
    }


def _task(found: dict[str, Any]) -> TaskProgress:
    given = {name: value for name, value in found.items() if name != "tasks"}
    begun, ended = _instant(given.pop("begun")), _instant(given.pop("ended"))
    inside = [_task(task) for task in found["tasks"]]
    return TaskProgress(**given, begun=begun, ended=ended, inside=inside)


def _instant(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
