"""The creation of routers, which every file of routes uses."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header
from fastapi.routing import APIRoute

from penstock_api.auth.access import GuardedRoute

OnlyNew = Annotated[
    Literal["*"] | None,
    Header(alias="If-None-Match", description="`*`: only create it. If it exists, the answer is 409."),
]


def Router(subject: str) -> APIRouter:
    """Return a router of guarded routes."""
    return APIRouter(tags=[subject], route_class=GuardedRoute, generate_unique_id_function=operation_id)


def operation_id(route: APIRoute) -> str:
    """Return the operation id in the OpenAPI description, such as `executions_start`, which generated clients use."""
    return f"{route.tags[0]}_{route.name}".replace(" ", "_")
