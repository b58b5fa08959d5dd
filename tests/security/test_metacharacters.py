"""Texts that mean something to SQL, to patterns, to JSON or to a shell are texts like others, wherever they come in."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from penstock import AskInquiry, Limit, Rule, Trigger, action
from penstock.errors import ExecutionFailed, PenstockError
from penstock.language.terms.outside_names import LONGEST
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport

NASTY = (
    "'; drop table execution; --",
    '"; delete from outbox; --',
    "$1 $2 %s %(x)s {0} {x}",
    "\\'; select pg_sleep(9) --",
    "%_\\%",
    "$$; drop table slot $$",
    "a\tb\r\nc\x7f\u2028",
    "\ud7ff 𝕏 ‮ ﷽",
    "null",
    "{1,2}",
    "(1,2)",
    "`id` $(id) ; id",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "x" * 4000,
)


@action(pack="meta")
async def echo(text: str) -> str:
    print(text)
    return text


@action(pack="meta")
async def fail(text: str) -> str:
    raise ValueError(text)


@action(pack="meta")
async def ask(text: str) -> str:
    raise AskInquiry(text, assignee=text)


said = Trigger("meta.said")
on_said = Rule(
    "meta.on_said",
    trigger=said,
    when="payload.text != ''",
    action=echo,
    params={"text": "{{ payload.text }}"},
)
each = Limit(1, ref="meta.each", scope="meta.echo", by="text", fair="text")
flow = from_yaml("""
workflow: meta.flow
parameters: {texts: {type: array, required: true}}
tasks:
  all: {action: meta.echo, with_items: "{{ parameters.texts }}", input: {text: "{{ item }}"}}
  bad:
    action: meta.fail
    input: {text: "{{ parameters.texts[0] }}"}
    next: [{when: failed(), publish: {why: "{{ error.message }}"}, do: end}]
  end: {action: meta.echo, input: {text: "{{ vars.why }}"}}
output: {all: "{{ tasks.all.result }}", why: "{{ tasks.end.result }}"}
""")
ALL: tuple[Any, ...] = (echo, fail, ask, said, on_said, each, flow)


async def test_parameters_keys_payloads_and_results_come_back_as_they_were(house: Installation) -> None:
    await house.start(*ALL)
    for text in NASTY:
        id = await house.client.start("meta.echo", {"text": text}, key=text[:LONGEST])
        assert await house.client.start("meta.echo", {"text": text}, key=text[:LONGEST]) == id
        assert await house.client.result(id, timeout=60) == text
        await house.client.publish("meta.said", {"text": text}, key=text[:LONGEST], source=text[:LONGEST])
    await house.until(
        f"select 1 from execution where finished_at is not null having count(*) = {2 * len(NASTY)}"
    )
    rows = await house.rows("select r.result::text from result r join enforcement n using (execution_id)")
    assert sorted(orjson.loads(row[0]) for row in rows) == sorted(NASTY)
    await house.quiet()
    await house.sound()


async def test_a_workflow_hands_them_on_and_errors_keep_them(house: Installation) -> None:
    await house.start(*ALL)
    output = await house.client.run("meta.flow", {"texts": list(NASTY)}, timeout=60)
    assert output == {"all": list(NASTY), "why": NASTY[0]}
    with pytest.raises(ExecutionFailed) as caught:
        await house.client.run("meta.fail", {"text": NASTY[1]}, timeout=60)
    assert NASTY[1] in str(caught.value)
    await house.sound()


async def test_reasons_names_of_people_and_filters_are_texts_too(house: Installation) -> None:
    await house.start(*ALL)
    for text in NASTY[:6]:
        id = await house.client.start("meta.ask", {"text": text})
        await house.until("select 1 from execution where id = $1 and status = 'waiting'", id)
        await house.client.answer(id, text, by=text)
        assert await house.client.result(id, timeout=60) == text
        other = await house.client.start("meta.echo", {"text": text}, delay=600)
        assert await house.client.cancel(other, reason=text) == 1
        assert (await house.client.get(other)).reason == text
    await house.sound()


@pytest.mark.parametrize("ref", NASTY)
async def test_a_ref_that_is_none_is_not_found(house: Installation, ref: str) -> None:
    with pytest.raises(PenstockError):
        await house.client.start(ref, {})
    with pytest.raises(PenstockError):
        await house.client.publish(ref, {})
