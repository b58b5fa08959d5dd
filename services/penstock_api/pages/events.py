"""The pages of events, with the rules that matched, and the reasons why others did not."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from penstock.errors import NotFound
from penstock.language.moves import enforcements as moves
from penstock.operate import definitions, enforcements, event_rules
from penstock.store.events.enforcement_list import EnforcementFilter
from penstock.store.events.event_list import EventFilter
from penstock_api.auth.access import READ, Asked, Tenants
from penstock_api.backend import Db, Lists
from penstock_api.pages.page import PageRouter, first_tenant, page
from penstock_api.pages.schema_form import fields

router: APIRouter = PageRouter("events")

PAGE = 50


@router.get("/events", dependencies=[READ])
async def show_all(
    request: Request,
    session: Lists,
    tenants: Tenants,
    caller: Asked,
    trigger: str = "",
    source: str = "",
    publish: Annotated[str, Query(description="The trigger with an open form.")] = "",
    before: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Show the newest events, and a form to publish one."""
    event_filter = EventFilter(trigger=trigger or None, source=source or None, tenants=tenants)
    rows = await event_rules.listed(session, event_filter, before=before, limit=PAGE + 1)
    triggers = await definitions.listed(session, ["trigger"])
    picked = next((entry for entry in triggers if entry["ref"] == publish), None)
    return page(
        request,
        "events.html",
        rows=rows[:PAGE],
        outcome_of=event_rules.outcome_of,
        after=str(rows[PAGE - 1].id) if len(rows) > PAGE else None,
        before=before,
        asked={"trigger": trigger, "source": source},
        triggers=triggers,
        picked=picked,
        fields=[] if picked is None else fields(picked["definition"].get("schema"), "payload"),
        tenant=first_tenant(caller),
        every=None if before else 3,
    )


@router.get("/events/{id}", dependencies=[READ])
async def show(id: UUID, request: Request, session: Db, caller: Asked) -> Response:
    """Show an event, with the outcomes of its trigger's rules."""
    event = await event_rules.described(session, id)
    if event is None or not caller.sees(event["tenant"]):
        raise NotFound(f"no event {id}", hint="Events are deleted when their retention is over.")
    return page(request, "event.html", event=event, verdicts=await event_rules.tried(session, id), every=3)


@router.get("/enforcements", dependencies=[READ])
async def show_enforcements(
    request: Request,
    session: Lists,
    tenants: Tenants,
    rule: str = "",
    event: Annotated[UUID | Literal[""], Query()] = "",
    status: str = "",
    cursor: Annotated[str, Query(alias="before")] = "",
) -> Response:
    """Show the rules that matched the newest events, by rule, event and status."""
    filters = EnforcementFilter(
        rule=rule or None,
        event=event or None,
        status=status if status in moves.MOVES else None,
        tenants=tenants,
    )
    rows, following = await enforcements.listed(session, filters, cursor=cursor or None, limit=PAGE)
    return page(
        request,
        "enforcements.html",
        rows=rows,
        after=following,
        before=cursor,
        asked={"rule": rule, "event": str(event), "status": status},
        rules=[definition["ref"] for definition in await definitions.rules(session)],
        statuses=list(moves.MOVES),
        every=None if cursor else 3,
    )
