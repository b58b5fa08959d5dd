"""The routes of workflow definitions: versions, graph, differences."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.language.workflows import Workflow
from penstock.language.workflows.diff import Difference
from penstock.language.workflows.graph import Graph
from penstock.operate import definitions, workflow_versions
from penstock.operate.masking import Masking
from penstock_api.auth.access import READ
from penstock_api.backend import Db
from penstock_api.models import definitions as models
from penstock_api.routes.router import Router

router = Router("workflows")

Digest = Annotated[
    str | None,
    Query(
        pattern="^[0-9a-f]{4,64}$",
        description="The digest of a version, or its beginning; by default the current version.",
    ),
]


@router.get("/workflows", dependencies=[READ])
async def list_workflows(session: Db) -> list[models.Definition]:
    """List the current version of each workflow."""
    return [models.Definition.model_validate(row) for row in await definitions.listed(session, ["workflow"])]


@router.get("/workflows/{ref}", dependencies=[READ])
async def show(ref: str, session: Db) -> models.Definition:
    """Show the current version of a workflow."""
    return models.Definition.model_validate(await definitions.one(session, ["workflow"], ref))


@router.get("/workflows/{ref}/versions", dependencies=[READ])
async def versions(ref: str, session: Db) -> list[models.Version]:
    """List every stored version of a workflow, newest first."""
    return [models.Version.model_validate(row) for row in await workflow_versions.versions(session, ref)]


@router.get("/workflows/{ref}/graph", dependencies=[READ])
async def graph(ref: str, session: Db, version: Digest = None) -> models.Graph:
    """Return the tasks of a workflow, each with the tasks before it."""
    workflow_graph = Graph(await _version(session, ref, version))
    nodes = [*workflow_graph.nodes, *([workflow_graph.exit] if workflow_graph.exit is not None else [])]
    return models.Graph(
        nodes=[
            models.Node(
                name=node.name, does=node.does, after=[workflow_graph[source].name for source in node.sources]
            )
            for node in nodes
        ]
    )


@router.get("/workflows/{ref}/diff", dependencies=[READ])
async def diff(ref: str, session: Db, old: Digest = None, new: Digest = None) -> list[Difference]:
    """Return the changes from version `old` to version `new`."""
    return await workflow_versions.differences(
        session,
        await _version(session, ref, old, masked=False),
        await _version(session, ref, new, masked=False),
    )


async def _version(session: Db, ref: str, digest: str | None, *, masked: bool = True) -> Workflow:
    masking = await Masking.load(session) if masked else None
    if digest is None:
        return await workflow_versions.current(session, ref, masking)
    return await workflow_versions.version(session, ref, digest, masking)
