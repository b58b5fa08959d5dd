"""The bounds of workflows and messages on real servers: a breach fails or is dead-lettered once, and other work advances."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pika
import pytest

from penstock import Rule, Trigger, action
from penstock.bounds import PAYLOAD_CAP
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from tests.flows.installation import AS_USED, Installation
from tests.penstock.messaging.transports.broker import plain_pika
from tests.servers.rabbitmq import RabbitMQ
from tests.surroundings.policy_flow import api_of

LARGE = PAYLOAD_CAP - 1_000


@action(pack="use")
async def large() -> str:
    return "x" * LARGE


@action(pack="use")
async def small(n: int = 0) -> int:
    return n


output = from_yaml("""
workflow: use.output
tasks: {one: {action: use.large}, two: {action: use.large}}
output: {values: ["{{ tasks.one.result }}", "{{ tasks.two.result }}"]}
""")
publishing = from_yaml("""
workflow: use.publishing
tasks:
  one: {action: use.large}
  two: {action: use.large, needs: [one], publish: {x: "{{ [tasks.one.result, result] }}"}}
""")
leading_on = from_yaml("""
workflow: use.leading_on
tasks:
  one: {action: use.large}
  two: {action: use.large, needs: [one], next: [{publish: {x: "{{ [tasks.one.result, result] }}"}, do: after}]}
  after: {action: use.small}
""")
chain = from_yaml("""
workflow: use.chain
tasks: {one: {action: use.small, input: {n: 1}}, two: {action: use.small, input: {n: 2}, needs: [one]}}
output: "{{ tasks.two.result }}"
""")
costly = Trigger("use.costly", schema={"properties": {"items": {"uniqueItems": True}}})
noted = Rule("use.noted", trigger=costly, action=small, params={"n": "{{ payload.n }}"})
COSTLY = orjson.dumps({"n": 0, "items": [{"a": n} for n in range(20_000)]})
MESSAGES = 20


@pytest.mark.parametrize("flow", [output, publishing, leading_on], ids=lambda flow: flow.ref)
async def test_workflow_that_stores_too_much_fails_once(database: str, vhost: str, flow: Any) -> None:
    async with Installation(database, vhost, **AS_USED) as house:
        await house.start(large, small, flow, chain)
        id = await house.client.start(flow.ref)
        others = await house.client.start_many("use.chain", [{} for _ in range(5)])
        with pytest.raises(ExecutionFailed, match=rf"5\d\d,\d\d\d bytes of JSON; at most {PAYLOAD_CAP:,}"):
            await house.client.result(id, timeout=60)
        assert [await house.client.result(other, timeout=60) for other in others] == [2] * 5
        await house.quiet()
        await house.sound()
        assert await house.rows("select from workflow_variable") == []
        assert await house.rows("select from dead_letter") == []


async def _connections(server: RabbitMQ, vhost: str, least: int) -> set[str]:
    """Return the names of the connections to this vhost, once there are so many: RabbitMQ lists them some seconds late."""
    name = vhost.rpartition("/")[2]
    names: set[str] = set()
    async with asyncio.timeout(30):
        while len(names) < least:
            listed = await asyncio.to_thread(api_of(server).call, "GET", f"vhosts/{name}/connections")
            names = {connection["name"] for connection in listed}
            await asyncio.sleep(0.2)
    return names


async def test_message_that_costs_the_budget_is_dead_lettered_once(
    database: str, vhost: str, rabbitmq_server: RabbitMQ
) -> None:
    async with Installation(database, vhost, **AS_USED) as house:
        await house.start(small, costly, noted)
        await (await house.parts()).transport.declare("event.received")
        before = await _connections(rabbitmq_server, vhost, least=3)
        with plain_pika(vhost) as channel:

            def send(body: bytes, id: str) -> None:
                channel.basic_publish(
                    "penstock.events", "use.costly", body, pika.BasicProperties(message_id=id)
                )

            send(COSTLY, "costly")
            for n in range(MESSAGES):
                send(orjson.dumps({"n": n, "items": [n]}), f"good-{n}")
        await house.until(
            "select from execution where status = 'completed' having count(*) = $1", MESSAGES, seconds=60
        )
        [letter] = await house.until("select queue, count, reason from dead_letter")
        assert (letter["queue"], letter["count"]) == ("event.received", 1)
        assert "steps" in letter["reason"]
        await house.quiet()
        assert before <= await _connections(rabbitmq_server, vhost, least=len(before))
        assert [row["count"] for row in await house.rows("select count from dead_letter")] == [1]
        await house.sound()
