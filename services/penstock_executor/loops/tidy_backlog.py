"""The loop of the backlogs of ordered routes. The loop deletes rows of executions that are not scheduled there any
more, and ends the order of a route that needs none any more. On a route without order a claim costs less, since it
takes the executions that its message names."""

from __future__ import annotations

from penstock.service.assembly import Parts
from penstock.store.executions import backlog
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop

BATCH = 1000
EVERY_S = 60.0
AGE_S = 600.0
"""Seconds for which a route keeps its order at the least."""


async def turn(parts: Parts, session: Session) -> bool:
    return await backlog.tidy(session, AGE_S, BATCH) == BATCH


LOOP = Loop("tidy_backlog", lambda settings: EVERY_S, turn)
