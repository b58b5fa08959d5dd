"""The pages of actions and workflows: the list, their versions and differences, and a form to start one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from penstock.language.workflows.graph import Graph
from penstock.operate import definitions, titles, workflow_versions
from penstock.operate.masking import Masking
from penstock.store.admission import holds
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.session.database import Session
from penstock_api.auth.access import READ, Asked
from penstock_api.backend import Db
from penstock_api.live.changes import Watched
from penstock_api.pages.drawings.layout import layout
from penstock_api.pages.page import PageRouter, first_tenant, page
from penstock_api.pages.schema_form import fields

router: APIRouter = PageRouter("definitions")

KINDS = ("action", "workflow")
RUNS = 10
"""The number of newest runs to list."""
Digest = Annotated[str | None, Query(pattern="^[0-9a-f]{4,64}$")]


@router.get("/actions", dependencies=[READ])
async def show_all(request: Request, session: Db, find: str = "") -> Response:
    """Show all actions and workflows, or those with `find` in their names."""
    entries = await definitions.listed(session, KINDS)
    rows = [entry for entry in entries if find.lower() in entry["ref"].lower()]
    return page(request, "actions.html", rows=rows, find=find, all=len(entries))


@router.get("/actions/{ref}", dependencies=[READ])
async def show(
    ref: str, request: Request, session: Db, caller: Asked, old: Digest = None, version: Digest = None
) -> Response:
    """Show an action or workflow, or a `version` of a workflow, and its differences from an `old` one."""
    definition = await definitions.one(session, KINDS, ref)
    context: dict[str, Any] = {"versions": [], "layout": None, "differences": None}
    if definition["kind"] == "workflow":
        context = await _workflow(session, ref, old, version)
    runs = await titles.listed(
        session, ExecutionFilter(action=ref, children=True, tenants=caller.tenants), limit=RUNS
    )
    return page(
        request,
        "action.html",
        one=definition,
        runs=runs,
        holds=await holds.of_action(session, ref),
        names_holder=caller.tenants is None,
        fields=fields(definition["definition"].get("parameters"), "parameters"),
        tenant=first_tenant(caller),
        old=old,
        version=version,
        statuses={},
        watched=Watched(caller.tenants, action=ref),
        **context,
    )


async def _workflow(session: Session, ref: str, old: str | None, version: str | None) -> dict[str, Any]:
    masking = await Masking.load(session)
    if version is None:
        workflow = await workflow_versions.current(session, ref, masking)
    else:
        workflow = await workflow_versions.version(session, ref, version, masking)
    differences = None
    if old is not None:
        old_version = await workflow_versions.version(session, ref, old)
        new_version = await (
            workflow_versions.version(session, ref, version)
            if version
            else workflow_versions.current(session, ref)
        )
        differences = await workflow_versions.differences(session, old_version, new_version)
    return {
        "versions": await workflow_versions.versions(session, ref),
        "layout": layout(Graph(workflow)),
        "differences": differences,
    }
