"""Everything that runs on behalf of something else is below it in its trace: durable functions, sub-workflows, what
follows an end, programs. An execution that nothing in the trace has started begins one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from opentelemetry import trace
from pydantic import Field

from penstock import DurableContext, Rule, Schedule, action, trigger
from penstock.language.definitions.program_actions import command_action
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.flows.traced import above, arrived, by_id, traced
from tests.kit.otlp import Collector

pytestmark = pytest.mark.either_transport


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Return the spans that this process sends."""
    with traced(monkeypatch) as collected:
        yield collected


@action(pack="tr")
async def thank(execution: str, status: str, result: Any, error: Any) -> str:
    return status


@action(pack="tr", on_success=thank)
async def one(number: int = 1) -> int:
    return number


@action(pack="tr", executor="process")
def apart(number: int = 1) -> int:
    with trace.get_tracer("of the user").start_as_current_span("in a child"):
        return number


@trigger(pack="tr", every=0.2)
async def letters() -> list[dict[str, int]]:
    return [{"n": 1}]


async def look(number: int) -> int:
    await asyncio.sleep(0.01)
    return number


async def refuse(pin: str) -> None:
    raise ValueError(f"{pin} is wrong")


@action(pack="tr")
async def locked(ctx: DurableContext, pin: Annotated[str, Field(json_schema_extra={"secret": True})]) -> None:
    await ctx.step("open", refuse, pin)


@action(pack="tr")
async def careful(ctx: DurableContext) -> int:
    number_seen = await ctx.step("look", look, 2)
    return int(await ctx.run(one, number=number_seen))


inner = from_yaml("""
workflow: tr.inner
tasks: {one: {action: tr.one}}
""")
outer = from_yaml("""
workflow: tr.outer
tasks: {inside: {workflow: tr.inner}}
""")
ALL = (one, thank, careful, inner, outer)


async def test_a_sub_workflow_and_a_follow_up_are_in_the_trace(
    house: Installation, received: Collector
) -> None:
    await house.start(*ALL)
    await house.client.start("tr.outer")
    await arrived(received, "execution tr.outer", "execution tr.thank")
    assert len({span.trace for span in by_id(received).values()}) == 1
    assert above(received, "execution tr.outer") == "start tr.outer"
    assert above(received, "execution tr.inner") == "execution tr.outer"
    assert above(received, "execution tr.one") == "execution tr.inner"
    assert above(received, "execution tr.thank") == "execution tr.one"


async def test_a_durable_function_has_a_span_for_each_step_that_ran(
    house: Installation, received: Collector
) -> None:
    await house.start(*ALL)
    id = await house.client.start("tr.careful")
    assert await house.client.result(id, timeout=30) == 2
    await arrived(received, "execution tr.careful", "execution tr.one")
    spans = by_id(received)
    step = received.one("step look")
    assert spans[step.parent].name == "attempt tr.careful"
    assert step.attributes["penstock.step.status"] == "completed"
    assert above(received, "execution tr.one") == "execution tr.careful"


async def test_an_attempt_that_is_lost_with_its_worker_has_a_span(
    house: Installation, received: Collector
) -> None:
    await house.apply(*ALL)
    await house.executor()
    id = await house.client.start("tr.one")
    await house.rows(
        "with w as (insert into process (id, kind, name, beat_at) values (gen_random_uuid(), 'worker', 'gone', "
        "now() - interval '1 hour') returning id), c as (insert into claim (id, worker, executions) "
        "select gen_random_uuid(), id, array[$1::uuid] from w) "
        "update execution set status = 'running', attempt = 1, claim = (select id from w) where id = $1 returning 1",
        id,
    )
    await house.until("select from attempt where outcome = 'lost'")
    await house.worker(*ALL)
    await arrived(received, "execution tr.one")
    first, done = sorted(received.named("attempt tr.one"), key=lambda span: span.began)
    assert [span.attributes["penstock.outcome"] for span in (first, done)] == ["lost", "completed"]
    assert first.parent == done.parent == received.one("execution tr.one").id


async def test_a_program_is_told_its_trace(house: Installation, received: Collector) -> None:
    tell = command_action("tr.tell", ["sh", "-c", "printenv TRACEPARENT"], options={"output": "text"})
    await house.start(tell)
    output = await house.client.run("tr.tell", timeout=30)
    await arrived(received, "attempt tr.tell")
    attempt = received.one("attempt tr.tell")
    assert str(output).strip() == f"00-{attempt.trace}-{attempt.id}-01"


async def test_a_schedule_that_fires_begins_a_trace(house: Installation, received: Collector) -> None:
    await house.start(*ALL, Schedule("tr.often", every="1s", action="tr.one"))
    await arrived(received, "execution tr.one", count=2)
    fired = received.named("execution tr.one")[:2]
    assert [span.parent for span in fired] == ["", ""]
    assert fired[0].trace != fired[1].trace


async def test_a_span_of_a_child_process_is_below_its_attempt(
    house: Installation, received: Collector
) -> None:
    await house.start(apart)
    assert await house.client.run("tr.apart", timeout=60) == 1
    await arrived(received, "execution tr.apart", "in a child")
    assert above(received, "in a child") == "attempt tr.apart"


async def test_an_event_of_a_poll_begins_a_trace(house: Installation, received: Collector) -> None:
    rule = Rule("tr.read_letter", trigger="tr.letters", action=one, params={"number": "{{ payload.n }}"})
    await house.start(letters, one, thank, rule)
    await arrived(received, "execution tr.one")
    spans = by_id(received)
    event = spans[spans[received.named("execution tr.one")[0].parent].parent]
    assert (event.name, event.parent) == ("event tr.letters", "")


async def test_a_step_that_fails_shows_no_secret(house: Installation, received: Collector) -> None:
    await house.start(locked)
    await house.client.start("tr.locked", {"pin": "correct horse"})
    await arrived(received, "execution tr.locked", "step open")
    assert all(span.failed for span in received.named("step open"))
    assert {span.said for span in received.named("step open")} == {"*** is wrong"}
    assert "correct horse" not in str(received.spans)
