"""What every file of routes begins with."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute

from penstock_api.access import GuardedRoute


def Router(subject: str) -> APIRouter:
    """A router whose routes say who may call them."""
    return APIRouter(tags=[subject], route_class=GuardedRoute, generate_unique_id_function=operation_id)


def operation_id(route: APIRoute) -> str:
    """What the description calls it, and so programs that were made of that: `executions_start`."""
    return f"{route.tags[0]}_{route.name}".replace(" ", "_")
