"""The page of executions, with a search, and bulk commands to cancel or re-run them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from penstock.client import executions as many
from penstock.client.bulk import Tally, tally
from penstock.errors import InvalidInput, NotAllowed
from penstock.language.moves import FINAL, STATUSES
from penstock.operate import list_filters, saved_views, titles
from penstock.operate.access import Caller
from penstock.run.cut_texts import cut_end
from penstock.service.problems import http_status
from penstock.store.access.saved_views import SavedView
from penstock.store.executions import executions
from penstock.store.executions.execution_list import ExecutionFilter
from penstock_api.auth.access import OPERATE, READ, Asked
from penstock_api.auth.chosen_executions import chosen_executions
from penstock_api.backend import Db, Here, Lists
from penstock_api.live.changes import Watched
from penstock_api.pages.page import PageRouter, form_of, page

router: APIRouter = PageRouter("executions")

PAGE = 50
OPEN = ",".join(status for status in STATUSES if status not in FINAL)
VIEWS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("All", {}),
    ("Open", {"status": OPEN}),
    ("Status waiting", {"status": "waiting"}),
    ("Has an open question", {"waits_for_answer": "true"}),
    ("Paused", {"paused": "true"}),
    ("Failed", {"status": "failed,timeout,abandoned"}),
    ("All, with tasks", {"children": "true"}),
)
"""The filters that the page offers as links."""
IN_TITLES = 500
"""The number of newest executions whose titles a search reads: titles are not stored."""
SHORT = re.compile(r"[0-9a-fA-F]{8}")
"""The form in which pages show an id: its last characters."""
DOES = {"cancel": "Cancel", "rerun": "Rerun", "rerun_failed": "Rerun from failure"}
EFFECTS = {"cancel": "asked to stop", "rerun": "rerun", "rerun_failed": "rerun from the failure"}


@router.get("/executions", dependencies=[READ])
async def show(
    request: Request,
    session: Lists,
    primary: Db,
    caller: Asked,
    before: Annotated[UUID | None, Query()] = None,
    find: str = "",
    view: Annotated[UUID | None, Query()] = None,
    edits: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Show the newest executions that match the filters in the address. `find` is an id or the end of an id, to which the page
    redirects. Or it is an action's name, a label (`key=value`), an idempotency key or a part of a title. `view` is a saved
    view, whose filters those of the address replace. `edits` is the saved view for which the filters of the address were
    chosen."""
    filters = {name: ",".join(request.query_params.getlist(name)) for name in list_filters.NAMES}
    filters = {name: value for name, value in filters.items() if value}
    # A standby may not have the view yet that was just saved, and to which the browser was led.
    views = await saved_views.listed(session if view is None and edits is None else primary, caller)
    opened = next((row for row in views if row.id == view), None)
    edited = next((row for row in views if row.id == edits), None)
    if view is not None and opened is None:
        opened = await saved_views.find(primary, caller, view)  # which says that there is none
    if opened is not None:
        stored = list_filters.as_texts(opened.filters)
        if filters and filters != stored:
            opened, edited, filters = None, opened, {**stored, **filters}
        else:
            filters = stored
    find = find.strip()
    if match := await _found(session, caller, find):
        return RedirectResponse(f"/executions/{match}", 303)
    narrowed, titled = filters, 0
    if find:
        filters = {**narrowed, ("label" if "=" in find else "action"): find}
    problem = None
    try:
        execution_filter = chosen(filters, caller)
    except (InvalidInput, NotAllowed) as error:
        # The page keeps what was typed. That of a view that is no longer valid has the button that deletes it.
        problem, execution_filter = error, ExecutionFilter(tenants=[])
    rows = [] if problem else await titles.listed(session, execution_filter, cursor=before, limit=PAGE + 1)
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
        200 if problem is None or opened is not None else http_status(problem),
        rows=rows[:PAGE],
        asked=filters,
        find=find if titled else "",
        titled=titled,
        views=VIEWS,
        saved=views,
        opened=opened,
        edited=edited,
        changeable={row.id for row in views if saved_views.may_change(row, caller)},
        owner=caller.name,
        problem=problem,
        kept={"view": opened.id} if opened is not None else _edited(filters, edited),
        ranged=_edited(filters, opened or edited),
        ages=_ages(filters),
        document=None if problem or titled else list_filters.from_texts(filters),
        may_share=not problem and saved_views.may_share(caller, filters),
        audience=saved_views.audience(filters, caller),
        before=before,
        after=str(rows[PAGE - 1].id) if len(rows) > PAGE else None,
        statuses=STATUSES,
        picked=set(filters.get("status", "").split(",")),
        watched=None if before else Watched(execution_filter.tenants, action=execution_filter.action),
        every=None if before else 10,
    )


def _edited(filters: Mapping[str, str], view: SavedView | None) -> Mapping[str, Any]:
    """Return the query of the address of a list that may become that of the view."""
    return filters if view is None else {**filters, "edits": view.id}


def _ages(filters: Mapping[str, str]) -> set[str]:
    """Return the names of the bounds of time that are ages, such as `24h`, and not instants."""
    return {name for name in list_filters.INSTANTS if name in filters and not filters[name][:4].isdigit()}


async def _found(session: Db, caller: Caller, find: str) -> UUID | None:
    """Return the execution of this id, or with this end of an id, if the caller may see it. An id of another tenant counts as
    unknown. Lists show the end of an id."""
    if SHORT.fullmatch(find):
        id = await executions.with_end(session, find.lower())
    else:
        try:
            id = UUID(find)
        except ValueError:
            return None
    if id is None:
        return None
    tenant = await executions.tenant(session, id)
    return id if tenant is not None and caller.sees(tenant) else None


def chosen(texts: Mapping[str, str], caller: Caller) -> ExecutionFilter:
    """Return the filter of a list. Raises InvalidInput for a value that is not valid, and NotAllowed for a tenant that the
    caller may not see."""
    return chosen_executions(list_filters.from_texts(texts), caller)


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
    filters = {name: form[name] for name in list_filters.NAMES if form.get(name)}
    does, reason = form.get("does", ""), form.get("reason") or None
    if does not in DOES:
        raise InvalidInput(
            f"there is no operation {cut_end(does, 50)!r} on executions",
            hint="Open the list of executions, and use its buttons.",
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
        cancel_reason = f"{reason or 'requested on a page'} ({caller.name})"
        return Tally(
            await many.cancel(backend.client, execution_filter, reason=cancel_reason, dry_run=dry_run)
        )
    options: dict[str, Any] = {"from_failed": does == "rerun_failed", "dry_run": dry_run}
    return await tally(many.rerun(backend.client, execution_filter, by=caller.name, reason=reason, **options))
