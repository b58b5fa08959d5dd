"""One trace from a publisher's span to the last attempt, on both transports, as a collector receives it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import pika
import pytest
from opentelemetry import trace
from pydantic import ValidationError

from penstock import RetryPolicy, Rule, Trigger, action, current
from penstock.cli.executions import print_execution
from penstock.language.workflows import from_yaml
from penstock.operate.executions import described
from penstock.settings import Settings
from tests.flows.installation import Installation
from tests.flows.traced import arrived, by_id, traced
from tests.kit.otlp import Collector, Received

placed = Trigger("tr.placed")


@action(pack="tr", retry=RetryPolicy(max_attempts=3, initial_delay=0.01))
async def pack(order: int) -> int:
    with trace.get_tracer("of the user").start_as_current_span("wrap it"):
        if current().attempt == 1:
            raise ConnectionError("not yet")
    return order


@action(pack="tr")
def weigh(order: int) -> int:
    with trace.get_tracer("of the user").start_as_current_span("read the scale"):
        return order


@action(pack="tr")
async def send(order: int) -> int:
    return order


parcel = from_yaml("""
workflow: tr.parcel
parameters: {order: {type: integer}}
tasks:
  pack: {action: tr.pack, input: {order: "{{ parameters.order }}"}}
  weigh: {action: tr.weigh, input: {order: "{{ parameters.order }}"}}
  send: {action: tr.send, needs: [pack, weigh], input: {order: "{{ parameters.order }}"}}
""")
rule = Rule("tr.send_parcel", trigger=placed, action="tr.parcel", params={"order": "{{ payload.id }}"})
ALL = (placed, pack, weigh, send, parcel, rule)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Return the spans that this process sends."""
    with traced(monkeypatch) as collected:
        yield collected


async def test_one_trace_from_the_publisher_to_the_last_attempt(
    house: Installation, received: Collector
) -> None:
    await house.start(*ALL)
    with trace.get_tracer("of the user").start_as_current_span("shop") as shop:
        event = await house.client.publish("tr.placed", {"id": 7})
    await arrived(received, "execution tr.parcel")
    await arrived(received, "shop")
    spans = by_id(received)
    assert {span.trace for span in spans.values()} == {f"{shop.get_span_context().trace_id:032x}"}

    def above(span: Received) -> str:
        return spans[span.parent].name

    assert above(received.one("publish tr.placed")) == "shop"
    assert above(received.one("event tr.placed")) == "publish tr.placed"
    assert above(received.one("rule tr.send_parcel")) == "event tr.placed"
    assert above(received.one("execution tr.parcel")) == "rule tr.send_parcel"
    for name in ("pack", "weigh", "send"):
        assert above(received.one(f"execution tr.{name}")) == "execution tr.parcel"
    assert {above(span) for span in received.named("advance tr.parcel")} == {"execution tr.parcel"}
    tries = sorted(received.named("attempt tr.pack"), key=lambda span: span.began)
    assert [span.attributes["penstock.attempt"] for span in tries] == [1, 2]
    assert [span.attributes["penstock.outcome"] for span in tries] == ["requested", "completed"]
    assert [span.failed for span in tries] == [True, False]
    assert {above(span) for span in tries} == {"execution tr.pack"}
    # What the action itself traces is below its attempt, in a coroutine as in a thread.
    assert [spans[span.parent] for span in received.named("wrap it")] == tries
    assert above(received.one("read the scale")) == "attempt tr.weigh"
    # A join comes after several: it is linked to each of them.
    joined = {spans[id].name for id in received.one("execution tr.send").links}
    assert joined == {"execution tr.pack", "execution tr.weigh"}
    assert received.one("event tr.placed").attributes["penstock.event.id"] == str(event)
    [root] = await house.rows("select * from execution where parent is null")
    assert received.one("execution tr.parcel").attributes["penstock.execution.id"] == str(root["id"])
    await house.sound()


def publish_from_outside(broker: str, traceparent: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker))
    connection.channel().basic_publish(
        "penstock.events",
        "tr.placed",
        b'{"id": 1}',
        pika.BasicProperties(headers={"traceparent": traceparent, "tracestate": "shop=1"}),
    )
    connection.close()


@pytest.mark.parametrize("transport", ["rabbitmq"], indirect=True)
async def test_an_event_from_outside_goes_on_with_the_trace_of_its_headers(
    house: Installation, received: Collector, broker: str
) -> None:
    await house.start(*ALL)
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await asyncio.to_thread(publish_from_outside, broker, header)
    await arrived(received, "execution tr.parcel")
    assert {span.trace for span in received.spans} == {"0af7651916cd43dd8448eb211c80319c"}
    assert received.one("event tr.placed").parent == "b7ad6b7169203331"
    [row] = await house.rows("select trace ->> 'tracestate' as state from event_trace")
    assert row["state"] == "shop=1"


async def test_an_end_without_a_worker_has_its_span_too(house: Installation, received: Collector) -> None:
    await house.apply(*ALL)
    await house.executor()
    id = await house.client.start("tr.send", {"order": 1})
    await house.client.cancel(id, reason="not wanted")
    await arrived(received, "execution tr.send")
    span = received.one("execution tr.send")
    assert span.failed
    assert (span.attributes["penstock.status"], span.attributes["penstock.reason"]) == (
        "cancelled",
        "not wanted",
    )
    assert span.parent == received.one("start tr.send").id


async def test_a_rerun_is_a_trace_of_its_own_that_is_linked_to_the_run_before(
    house: Installation, received: Collector
) -> None:
    await house.start(*ALL)
    old = await house.client.start("tr.send", {"order": 1})
    await house.client.result(old, timeout=30)
    new = await house.client.rerun(old, by="me")
    await house.client.result(new, timeout=30)
    await arrived(received, "execution tr.send", count=2)
    of = {span.attributes["penstock.execution.id"]: span for span in received.named("execution tr.send")}
    assert of[str(new)].links == [of[str(old)].id]
    assert of[str(new)].trace != of[str(old)].trace


async def test_an_unsampled_run_carries_no_trace(
    house: Installation, received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    await house.start(*ALL)
    await house.client.publish("tr.placed", {"id": 7})
    await house.until("select from execution where task = 'send' and status = 'completed'")
    assert (
        await house.rows("select from payload where origin ? 'trace' union all select from event_trace") == []
    )
    assert received.spans == []


async def test_without_tracing_nothing_of_opentelemetry_is_imported(
    database: str, broker: str | None
) -> None:
    code = f"""
import asyncio, sys
from tests.flows.installation import Installation
from tests.flows import shop

async def main():
    async with Installation({database!r}, {broker!r}) as house:
        await house.start(*shop.ALL)
        assert await house.client.run("shop.count", {{"words": "a b"}}, timeout=30) == 2

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[]"]), done.stderr


async def test_a_run_is_shown_with_a_link_to_its_trace(
    make_house: Callable[..., Installation], received: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    async with make_house(trace_url="https://traces.example/{trace_id}/all") as house:
        await house.start(*ALL)
        id = await house.client.start("tr.send", {"order": 1}, by="ada")
        await house.client.result(id, timeout=30)
        description = await described(house.session, id)
        untouched = await house.rows("select origin ->> 'by' as by from payload where execution_id = $1", id)
    await arrived(received, "start tr.send")
    trace_id = received.one("start tr.send").trace
    assert description is not None
    assert description["trace"] == {"id": trace_id, "url": f"https://traces.example/{trace_id}/all"}
    assert description["origin"] == {"by": "ada"}
    assert untouched[0]["by"] == "ada"
    print_execution(description)
    assert f"https://traces.example/{trace_id}/all" in capsys.readouterr().out.replace("\n", "")


def test_an_address_of_traces_has_a_place_for_the_id() -> None:
    with pytest.raises(ValidationError, match=r"\{trace_id\}"):
        Settings(trace_url="https://traces.example/")
