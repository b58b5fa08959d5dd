"""Values that are JSON on the command line, and text in the schema."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Trigger, action
from penstock.cli.text_values import send_as_typed
from penstock.errors import InvalidInput, NotAllowed
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

posted = Trigger(
    "typed.posted",
    schema={"type": "object", "properties": {"number": {"type": "string"}, "n": {"type": "integer"}}},
)


@action(pack="typed")
async def keep(number: str, n: int = 0, note: str | None = None) -> dict[str, Any]:
    return {"number": number, "n": n, "note": note}


@action(pack="typed")
async def lines(lines: list[dict[str, str]]) -> list[dict[str, str]]:
    return lines


ASKING = from_yaml("""
workflow: typed.asking
tasks:
  ask: {inquiry: {prompt: "Which number?", schema: {type: string}}}
""")
ALL = (keep, lines, posted, ASKING)


async def test_run_sends_a_number_as_text_where_only_text_fits(house: Installation) -> None:
    await house.start(*ALL)
    kept = await penstock("run", "typed.keep", "number=123", "n=5", "note=1.50", "--wait", "--json")
    assert kept.document["result"] == {"number": "123", "n": 5, "note": "1.50"}
    kept = await penstock("run", "typed.keep", "number=true", "note=null", "--wait", "--json")
    assert kept.document["result"] == {"number": "true", "n": 0, "note": None}
    refused = await penstock("run", "typed.keep", "number=123", "n=five")
    assert refused.code == 1
    assert "n: expected integer, got string" in refused.err


async def test_publish_sends_a_number_as_text_where_only_text_fits(house: Installation) -> None:
    await house.apply(*ALL)
    event = await penstock("publish", "typed.posted", "number=5", "n=5", "--json")
    shown = await penstock("show", event.document["id"], "--json")
    assert shown.document["payload"] == {"number": "5", "n": 5}


async def test_answer_sends_a_number_as_text_where_only_text_fits(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("typed.asking")
    [ask] = await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    answered = await penstock("answer", ask["id"], "71", "--json")
    assert (answered.code, answered.document["answered"]) == (0, "71")
    await house.client.result(id, timeout=30)


async def test_rerun_sets_a_number_as_text_where_only_text_fits(house: Installation) -> None:
    await house.start(*ALL)
    first = await house.client.start("typed.lines", {"lines": [{"sku": "ink"}]})
    await house.client.result(first, timeout=30)
    again = await penstock("rerun", first, "--set", "lines[0].sku=12", "--json")
    assert await house.client.result(again.document["id"], timeout=30) == [{"sku": "12"}]


async def test_rerun_names_the_path_that_was_meant(house: Installation) -> None:
    await house.start(*ALL)
    first = await house.client.start("typed.lines", {"lines": [{"sku": "ink"}]})
    await house.client.result(first, timeout=30)
    refused = await penstock("rerun", first, "--set", "line[0].sku=pen")
    assert refused.code == 1
    assert "Did you mean 'lines[0].sku'?" in refused.err


async def test_refusal_shows_the_quotes_if_the_schema_cannot_be_read() -> None:
    async def refuse(values: dict[str, Any]) -> None:
        raise InvalidInput("number: expected string, got integer", hint="It takes: number=string.")

    async def no_schema() -> None:
        raise NotAllowed("the token lacks the scope 'read'")

    with pytest.raises(InvalidInput) as refusal:
        await send_as_typed(refuse, {"number": 5}, ["number=5"], no_schema)
    assert refusal.value.hint is not None
    assert refusal.value.hint.endswith("""For the text, write number='"5"'.""")
