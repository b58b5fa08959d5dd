"""The conversion of the API's answers to the form in which the database returns executions and events, for `show`."""

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
    """Return the description of an execution with its tasks, or of an event with the outcomes of its rules. Raises
    NotFound."""
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


def _execution(execution: dict[str, Any]) -> dict[str, Any]:
    instants = {name: _instant(execution[name]) for name in INSTANTS}
    attempts = [
        {
            **entry,
            "started_at": _instant(entry["started_at"]),
            "ended_at": _instant(entry["ended_at"]),
            "duration": None if entry["duration"] is None else timedelta(seconds=entry["duration"]),
        }
        for entry in execution["attempts"]
    ]
    commands = [
        {**entry, "created_at": _instant(entry["created_at"]), "obeyed_at": _instant(entry["obeyed_at"])}
        for entry in execution["told"]
    ]
    item = -1 if execution["item"] is None else execution["item"]
    tasks = [_task(task) for task in execution["tasks"]]
    return {
        **execution,
        **instants,
        "item": item,
        "attempts": attempts,
        "told": commands,
        "tasks": tasks,
        "graph": execution if tasks else None,
    }


def _task(node: dict[str, Any]) -> TaskProgress:
    fields = {name: value for name, value in node.items() if name != "tasks"}
    began, finished = _instant(fields.pop("begun")), _instant(fields.pop("ended"))
    inside = [_task(task) for task in node["tasks"]]
    return TaskProgress(**fields, begun=began, ended=finished, inside=inside)


def _instant(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
