"""The route of a task in `task_routes`, compared with Celery's own router."""

from __future__ import annotations

import random

import pytest
from celery.app.routes import MapRoute

from penstock_import.celery_routes import deciding_key

_PARTS = (
    "depot",
    "tasks",
    "weigh",
    "weigh_all",
    "tell",
    "*",
    "w*",
    "*.tasks",
    "?",
    "[dt]*",
    "depot.*",
    "*tell",
)


@pytest.mark.parametrize("seed", range(20))
def test_route_of_task_is_that_of_celery(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        keys = [".".join(rng.choices(_PARTS, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 6))]
        routes = {key: {"queue": key} for key in keys}
        task = ".".join(rng.choices(_PARTS[:5], k=rng.randint(1, 4)))
        theirs = MapRoute(routes)(task)
        assert deciding_key(routes, task) == (theirs["queue"] if theirs else None), (routes, task)
