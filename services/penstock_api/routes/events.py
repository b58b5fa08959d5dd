"""The routes of events, for publishing and for the outcomes of rules."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Header, Query, Response

from penstock.errors import NotFound
from penstock.language.terms.event_sources import API
from penstock.operate import enforcements, event_rules
from penstock.store.events.enforcement_list import EnforcementFilter, ListedEnforcement
from penstock.store.events.event_list import EventFilter, ListedEvent
from penstock_api.auth.access import PUBLISH, READ, Asked, Tenants, own
from penstock_api.backend import Db, Here, Lists
from penstock_api.fast_path import quickly
from penstock_api.models import events as models
from penstock_api.models.model import Instant, Page
from penstock_api.routes.router import Router

router = Router("events")


@router.post("/events", status_code=201, dependencies=[PUBLISH])
@quickly(models.Publish)
async def publish(
    given: models.Publish,
    here: Here,
    caller: Asked,
    response: Response,
    idempotency_key: Annotated[
        str | None, Header(max_length=1000, description="The same key returns the same event.")
    ] = None,
) -> models.Published:
    """Publish an event. The answer comes once the event is durably stored."""
    tenant = own(caller, given.tenant)
    id = await here.client.publishing.publish(
        given.trigger,
        given.payload,
        key=idempotency_key,
        tenant=tenant,
        source=API,
        max_depth=given.max_depth,
        max_descendants=given.max_descendants,
    )
    response.headers["location"] = f"/api/v1/events/{id}"
    return models.Published(id=id)


@router.get("/events", dependencies=[READ])
async def list_events(
    session: Lists,
    tenants: Tenants,
    trigger: Annotated[str | None, Query(description="Only events of this trigger.")] = None,
    source: Annotated[str | None, Query(description="Only events from this source.")] = None,
    since: Annotated[
        Instant | None, Query(description="Only events stored at this instant or later.")
    ] = None,
    until: Annotated[Instant | None, Query(description="Only events stored before this instant.")] = None,
    key: Annotated[str | None, Query(description="Only events published with this idempotency key.")] = None,
    before: Annotated[UUID | None, Query(description="The value of `next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")] = 50,
) -> Page[ListedEvent]:
    """List the newest events, each with the number of rules that matched; secrets are `***`."""
    event_filter = EventFilter(
        trigger=trigger, source=source, since=since, until=until, key=key, tenants=tenants
    )
    rows = await event_rules.listed(session, event_filter, before=before, limit=limit)
    last = str(rows[-1].id) if len(rows) == limit else None
    return Page(items=rows, next=last)


@router.get("/events/{id}", dependencies=[READ])
async def show(id: UUID, session: Db, caller: Asked) -> models.Event:
    """Show an event, with the rules that matched, and why others did not."""
    event = await event_rules.described(session, id)
    if event is None or not caller.sees(event["tenant"]):
        raise NotFound(f"no event {id}", hint="Events are deleted when their retention is over.")
    return models.Event.model_validate({**event, "rules": await event_rules.tried(session, id)})


@router.get("/enforcements", dependencies=[READ])
async def list_enforcements(
    session: Lists,
    tenants: Tenants,
    rule: Annotated[str | None, Query(description="Only enforcements of this rule.")] = None,
    event: Annotated[UUID | None, Query(description="Only enforcements of this event.")] = None,
    status: Annotated[
        str | None, Query(description="Only with this status: `created`, `executed` or `failed`.")
    ] = None,
    cursor: Annotated[
        str | None, Query(alias="before", description="The value of `next` of the previous page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The maximum number to return.")] = 50,
) -> Page[ListedEnforcement]:
    """List the enforcements of the newest events: each is a rule that matched an event."""
    filters = EnforcementFilter(rule=rule, event=event, status=status, tenants=tenants)
    rows, following = await enforcements.listed(session, filters, cursor=cursor, limit=limit)
    return Page(items=rows, next=following)
