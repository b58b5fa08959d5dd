"""The common beginning of every file of routes."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute

from penstock_api.auth.access import GuardedRoute


def Router(subject: str) -> APIRouter:
    """A router of guarded routes."""
    return APIRouter(tags=[subject], route_class=GuardedRoute, generate_unique_id_function=operation_id)


def operation_id(route: APIRoute) -> str:
    """Return the operation id in the description, which generated programs use: `executions_start`."""
    return f"{route.tags[0]}_{route.name}".replace(" ", "_")
