"""Executions with a requested end whose attempt defers, asks or waits for a callback: they end, and have no result."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from penstock import AskInquiry, Later, Timeouts, action, later
from penstock.language.workflows import from_yaml
from penstock.run.steering import Defer
from tests.flows.installation import Installation
from tests.flows.test_from_outside import api


async def steer(how: str) -> Later:
    """Do not stop where a cancel interrupts the action, and steer instead."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(600)
    if how == "defer":
        raise Defer(delay=60, state={"page": 7})
    if how == "ask":
        raise AskInquiry("Go on?")
    return later("build")


@action(pack="steered")
async def cancelled(how: str) -> Later:
    return await steer(how)


@action(pack="steered", timeouts=Timeouts(total=0.5))
async def late(how: str) -> Later:
    return await steer(how)


@action(pack="steered")
async def repeat(value: Any) -> dict[str, Any]:
    return {"value": value}


FLOW = from_yaml("""
workflow: steered.flow
parameters: {how: {type: string}}
tasks:
  stopped: {action: steered.cancelled, input: {how: "{{ parameters.how }}"}}
  after:
    action: steered.repeat
    needs: [stopped]
    when: always
    input: {value: "{{ tasks.stopped.result }}"}
""")
STEERINGS = pytest.mark.parametrize("how", ["defer", "ask", "later"])


@STEERINGS
@pytest.mark.parametrize("status", ["cancelled", "timeout"])
async def test_steering_after_a_requested_end_is_no_result(
    house: Installation, how: str, status: str
) -> None:
    await house.start(cancelled, late)
    id = await house.client.start(
        "steered.cancelled" if status == "cancelled" else "steered.late", {"how": how}
    )
    if status == "cancelled":
        await house.until("select 1 from execution where id = $1 and status = 'running'", id)
        await house.client.cancel(id)
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    [row] = await house.rows(
        "select e.status, r.result::text from execution e join result r on r.execution_id = e.id where e.id = $1",
        id,
    )
    assert tuple(row) == (status, None)
    async with api(house) as caller:
        answer = (await caller.get(f"/executions/{id}/result")).json()
    assert answer.get("result") is None, answer
    await house.sound()


@STEERINGS
async def test_task_after_a_cancelled_one_reads_no_steering(house: Installation, how: str) -> None:
    await house.start(cancelled, repeat, FLOW)
    run = await house.client.start("steered.flow", {"how": how})
    await house.until("select 1 from execution where task = 'stopped' and status = 'running'")
    [task] = await house.rows("select id from execution where task = 'stopped'")
    await house.client.cancel(task["id"])
    await house.until("select 1 from execution where id = $1 and finished_at is not null", run)
    rows = await house.rows(
        "select e.task, e.status, r.result::text from execution e join result r on r.execution_id = e.id"
        " where e.parent = $1",
        run,
    )
    assert {tuple(row) for row in rows} == {
        ("stopped", "cancelled", None),
        ("after", "completed", '{"value": null}'),
    }
    await house.sound()
