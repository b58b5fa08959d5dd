"""The route of the stream of changes: server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from penstock.store.executions.changes import Change
from penstock_api.auth.access import READ, Tenants, still_lets_in
from penstock_api.backend import Here
from penstock_api.live.changes import Watched
from penstock_api.live.guarded_streams import while_let_in
from penstock_api.models.changes import Changed
from penstock_api.routes.router import Router

router = Router("stream")

LONGEST = 3600.0
"""The seconds after which a stream ends. The client then reconnects, possibly to another replica."""


@router.get("/stream", response_class=EventSourceResponse, dependencies=[READ])
async def stream(
    request: Request,
    backend: Here,
    tenants: Tenants,
    execution: Annotated[UUID | None, Query(description="Only this execution and its tasks.")] = None,
    action: Annotated[str | None, Query(description="Only executions of this action.")] = None,
    turns: Annotated[
        bool,
        Query(
            description="Send one server-sent event named `turn` for all simultaneous status changes, without their contents."
        ),
    ] = False,
    seconds: Annotated[
        float, Query(gt=0, le=LONGEST, description="Seconds after which the stream ends.")
    ] = LONGEST,
    last_event_id: Annotated[
        str | None, Header(pattern=r"^\d{1,10}(\.\d{1,6})?$", description="Continue after this event.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Stream the status changes of executions as server-sent events named `changed`, in batches, at most a few times a
    second. After too many changes comes an event named `reset`: the client should then read its list again. After a lost
    connection the same change may come twice. The stream ends within seconds once the token or the session does."""

    watched = Watched(tenants, execution, action)
    since = None if last_event_id is None else datetime.fromtimestamp(float(last_event_id), UTC)
    yield ServerSentEvent(retry=1000)
    turns_of_stream = backend.changes.watch(watched, seconds=seconds, since=since)
    async for turn in while_let_in(turns_of_stream, still_lets_in(request, READ)):
        if turn is None:
            yield ServerSentEvent(event="reset", data={})
            continue
        if not turn:
            yield ServerSentEvent(comment="watching")
            continue
        if turns:
            yield ServerSentEvent(event="turn", id=_id(turn[-1]), data={})
            continue
        for change in turn:
            yield ServerSentEvent(
                event="changed",
                id=_id(change),
                data=Changed.model_validate(change).model_dump(mode="json"),
            )


def _id(change: Change) -> str:
    return f"{change.at.timestamp():.6f}"
