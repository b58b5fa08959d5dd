"""The broker loses every message it has: what should have followed from them follows all the same, once."""

from __future__ import annotations

import asyncio

import aiormq

from penstock import Trigger, action
from penstock.language.workflows import from_yaml
from penstock.store.outbox.queues import EXECUTION_COMPLETED, WORKFLOW_STARTED
from penstock.store.session.staged_messages import StagedMessage
from tests.flows.installation import Installation

gate = asyncio.Event()


@action(pack="lost")
async def told(execution: str, status: str, result: int, error: None) -> str:
    return execution


@action(pack="lost", on_success=told)
async def gated() -> int:
    await gate.wait()
    return 7


ASKS = """
workflow: lost.{name}
tasks:
  ask: {{inquiry: {{prompt: "Go on?"}}}}
  first: {{action: lost.gated}}
  then: {{action: noop, needs: [first], input: {{seven: "{{{{ tasks.first.result }}}}"}}}}
  last: {{wait_for_event: {{trigger: lost.never}}, needs: [then]}}
"""
GOES_ON, STOPS = from_yaml(ASKS.format(name="goes_on")), from_yaml(ASKS.format(name="stops"))
CALLED = """
select 1 from execution e join namespace n on n.id = e.namespace_id
where n.action = 'lost.told' and e.status = 'completed' having count(*) = $1
"""
ENDS = "select 0::bigint as outbox_id, 'execution.completed' as queue, array_agg(id) as ids from execution"


async def lose_everything(house: Installation, broker: str | None) -> None:
    """Lose all messages, as if every queue had been purged."""
    parts = await house.parts()
    await parts.publisher.flush()
    await house.rows("delete from outbox")
    if broker is not None:
        connection = await aiormq.connect(broker)
        channel = await connection.channel()
        for queue in (EXECUTION_COMPLETED, WORKFLOW_STARTED):
            await channel.queue_purge(f"penstock.{queue}")
        await connection.close()


async def test_a_purge_of_the_queues_loses_no_callback_no_step_of_a_workflow_and_no_cancellation(
    house: Installation, broker: str | None
) -> None:
    gate.clear()
    await house.apply(told, gated, GOES_ON, STOPS, Trigger("lost.never"))
    await house.worker(told, gated)
    first = await house.executor()
    alone = await house.client.start("lost.gated")
    goes_on, stops = await house.client.start("lost.goes_on"), await house.client.start("lost.stops")
    await house.until(
        "select 1 from execution where status = 'running' and claim is not null having count(*) = 3"
    )
    await house.until("select 1 from inquiry having count(*) = 2")
    await house.ended(first)
    gate.set()
    await house.until("select 1 from execution where status = 'completed' having count(*) = 3")
    await house.client.cancel(stops, reason="enough")
    await lose_everything(house, broker)

    await house.executor()
    await house.until(
        "select 1 from event_wait w join execution e on e.id = w.execution_id where e.parent = $1", goes_on
    )
    await house.until("select 1 from execution where id = $1 and status = 'cancelled'", stops)
    await house.until(CALLED, 3)
    parts = await house.parts()
    for _ in range(2):
        parts.publisher.publish([StagedMessage(*row) for row in await house.rows(ENDS)])
    await house.client.cancel(goes_on)
    await house.quiet()
    assert await house.rows(CALLED, 3)
    told_of = await house.rows(
        "select r.result #>> '{}' from result r join execution e on e.id = r.execution_id "
        "join namespace n on n.id = e.namespace_id where n.action = 'lost.told'"
    )
    assert len({row[0] for row in told_of}) == 3
    assert str(alone) in {row[0] for row in told_of}
    await house.sound()
