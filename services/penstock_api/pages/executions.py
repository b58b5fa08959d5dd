"""The page of executions, with a search, and bulk commands to cancel or re-run them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from penstock.client import executions as many
from penstock.client.bulk import Tally, tally
from penstock.errors import InvalidInput
from penstock.language.moves import FINAL, STATUSES
from penstock.operate import titles
from penstock.operate.access import Caller
from penstock.run.cut_texts import cut_end
from penstock.store.executions import executions
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.auth.access import OPERATE, READ, Asked, own
from penstock_api.backend import Db, Here, Lists
from penstock_api.live.changes import Watched
from penstock_api.pages.page import PageRouter, form_of, page
from penstock_api.requests.label_words import label_words, labels_of

router: APIRouter = PageRouter("executions")

PAGE = 50
NAMES = (
    "status",
    "action",
    "tenant",
    "since",
    "until",
    "event",
    "parent",
    "children",
    "label",
    "key",
    "waits_for_answer",
)
"""The filters of a list, with the same names in the address of the page as in the API."""
OPEN = ",".join(status for status in STATUSES if status not in FINAL)
VIEWS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("All", {}),
    ("Open", {"status": OPEN}),
    ("Waiting", {"status": "waiting"}),
    ("Waits for an answer", {"waits_for_answer": "true"}),
    ("Failed", {"status": "failed,timeout,abandoned"}),
    ("Tasks included", {"children": "true"}),
)
"""The filters that the page offers as links."""
IN_TITLES = 500
"""The number of newest executions whose titles a search reads: titles are not stored."""
DOES = {"cancel": "Cancel", "rerun": "Rerun", "rerun_failed": "Rerun from failure"}
EFFECTS = {"cancel": "asked to stop", "rerun": "run again", "rerun_failed": "run again from the failure"}


@router.get("/executions", dependencies=[READ])
async def show(
    request: Request,
    session: Lists,
    caller: Asked,
    before: Annotated[UUID | None, Query()] = None,
    find: str = "",
) -> Response:
    """Show the newest executions that match the filters in the address. `find` is an id, to which the page redirects,
    an action's name, a label (`key=value`), an idempotency key or a part of a title."""
    filters = {name: ",".join(request.query_params.getlist(name)) for name in NAMES}
    filters = {name: value for name, value in filters.items() if value}
    find = find.strip()
    if match := await _found(session, caller, find):
        return RedirectResponse(f"/executions/{match}", 303)
    narrowed, titled = filters, 0
    if find:
        filters = {**narrowed, ("label" if "=" in find else "action"): find}
    execution_filter = chosen(filters, caller)
    rows = await titles.listed(session, execution_filter, cursor=before, limit=PAGE + 1)
    if find and not rows and "action" in filters and before is None:
        by_key = chosen({**narrowed, "key": find}, caller)
        if rows := await titles.listed(session, by_key, limit=PAGE + 1):
            filters, execution_filter = {**narrowed, "key": find}, by_key
        else:
            newest = await titles.listed(session, chosen(narrowed, caller), limit=IN_TITLES)
            rows = [row for row in newest if find.casefold() in (row.title or "").casefold()][:PAGE]
            titled = len(newest) if rows else 0
    return page(
        request,
        "executions.html",
        rows=rows[:PAGE],
        asked=filters,
        find=find if titled else "",
        titled=titled,
        views=VIEWS,
        before=before,
        after=str(rows[PAGE - 1].id) if len(rows) > PAGE else None,
        statuses=STATUSES,
        picked=set(filters.get("status", "").split(",")),
        watched=None if before else Watched(execution_filter.tenants, action=execution_filter.action),
        every=None if before else 10,
    )


async def _found(session: Db, caller: Caller, find: str) -> UUID | None:
    """Return the execution of this id if the caller may see it. An id of another tenant counts as unknown."""
    try:
        id = UUID(find)
    except ValueError:
        return None
    tenant = await executions.tenant(session, id)
    return id if tenant is not None and caller.sees(tenant) else None


def chosen(filters: Mapping[str, str], caller: Caller) -> ExecutionFilter:
    """Return the filter of a list. Raises InvalidInput for a value that is not valid, and NotAllowed for a tenant that
    the caller may not see."""
    status = [value for value in filters.get("status", "").split(",") if value]
    if unknown := sorted(set(status) - set(STATUSES)):
        raise InvalidInput(
            f"unknown status {', '.join(map(repr, unknown))}", hint=f"Available: {', '.join(STATUSES)}."
        )
    tenant = filters.get("tenant")
    if tenant is not None:
        own(caller, tenant)
    elif caller.tenants is not None and len(caller.tenants) == 1:
        [tenant] = caller.tenants
    return ExecutionFilter(
        tenant=tenant,
        status=status or None,
        action=filters.get("action"),
        tenants=caller.tenants if tenant is None else frozenset((tenant,)),
        since=_instant(filters, "since"),
        until=_instant(filters, "until"),
        event=_id(filters, "event"),
        parent=_id(filters, "parent"),
        children=filters.get("children") == "true",
        waits_for_answer=filters.get("waits_for_answer") == "true",
        labels=labels_of(label_words(filters.get("label", ""))),
        key=filters.get("key"),
    )


def _instant(filters: Mapping[str, str], name: str) -> datetime | None:
    """Parse an instant from the form in which a browser sends it. Without an offset it is UTC."""
    if name not in filters:
        return None
    try:
        instant = datetime.fromisoformat(filters[name])
    except ValueError:
        raise InvalidInput(
            f"{name} is no instant: {cut_end(filters[name], 50)!r}", hint="Such as 2030-01-31T09:00."
        ) from None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _id(filters: Mapping[str, str], name: str) -> UUID | None:
    try:
        return UUID(filters[name]) if name in filters else None
    except ValueError:
        raise InvalidInput(
            f"{cut_end(filters[name], 50)!r} is not an id, which {name} needs",
            hint="Copy the id from the page of that object.",
        ) from None


@router.get("/executions/many", dependencies=[OPERATE])
async def ask_many(request: Request, backend: Here, caller: Asked) -> Response:
    """Show the number of executions that would be cancelled or re-run."""
    return await _many(request, backend, caller, dict(request.query_params), sure=False)


@router.post("/executions/many", dependencies=[OPERATE])
async def change_many(request: Request, backend: Here, caller: Asked) -> Response:
    """Cancel or re-run the selected executions."""
    return await _many(request, backend, caller, await form_of(request), sure=True)


async def _many(
    request: Request, backend: Here, caller: Caller, form: Mapping[str, str], *, sure: bool
) -> Response:
    filters = {name: form[name] for name in NAMES if form.get(name)}
    does, reason = form.get("does", ""), form.get("reason") or None
    if does not in DOES:
        raise InvalidInput(
            f"there is no operation {cut_end(does, 50)!r} on executions",
            hint="Begin at the list of executions.",
        )
    return page(
        request,
        "many.html",
        subject="executions",
        back="/executions",
        asked=filters,
        does=does,
        verb=DOES[does],
        effect=EFFECTS[does],
        sure=sure,
        reason=reason,
        done=await _done(backend, chosen(filters, caller), caller, does, reason, dry_run=not sure),
    )


async def _done(
    backend: Here,
    execution_filter: ExecutionFilter,
    caller: Caller,
    does: str,
    reason: str | None,
    *,
    dry_run: bool,
) -> Tally:
    if does == "cancel":
        cancel_reason = f"{reason or 'asked on the pages'} ({caller.name})"
        return Tally(
            await many.cancel(backend.client, execution_filter, reason=cancel_reason, dry_run=dry_run)
        )
    options: dict[str, Any] = {"from_failed": does == "rerun_failed", "dry_run": dry_run}
    return await tally(many.rerun(backend.client, execution_filter, by=caller.name, reason=reason, **options))
