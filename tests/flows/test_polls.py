"""Functions that look for events, called every so often."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from penstock import Rule, action, trigger
from penstock.errors import DefinitionError
from penstock.language.definitions.trigger import Trigger
from tests.flows.installation import Installation

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
POLL = "select * from poll where trigger = $1"


@action(pack="post")
async def sort(n: int) -> int:
    return n


@trigger(pack="post", every=0.2, schema=SCHEMA)
async def letters(state: dict[str, Any]) -> list[dict[str, int]]:
    """Finds one letter more each time."""
    state["n"] = state.get("n", 0) + 1
    return [{"n": state["n"]}]


sort_letters = Rule("post.sort_letters", trigger="post.letters", action=sort, params={"n": "{{ payload.n }}"})


async def test_poll_events_are_stored_once_and_the_state_is_kept(house: Installation) -> None:
    await house.apply(letters, sort, sort_letters)
    for _ in range(3):  # replicas that compete
        await house.executor()
    await house.worker(letters, sort)
    await house.until("select 1 from event having count(*) >= 4")
    await house.until("select 1 from execution e join namespace n on n.id = e.namespace_id "
                      "where n.action = 'post.sort' and e.status = 'completed' having count(*) >= 3")  # fmt: skip
    await house.rows("update poll set enabled = false returning 1")
    [poll] = await house.until("select state::text as state, found from poll where running is null")
    numbers = [
        row["n"] for row in await house.rows("select (payload ->> 'n')::int as n from event order by 1")
    ]
    assert numbers == list(range(1, len(numbers) + 1)), "each once, by a state that was never lost or forked"
    assert poll["found"] == len(numbers)
    assert poll["state"] == f'{{"n": {len(numbers)}}}'
    await house.quiet()
    await house.sound()


async def test_there_is_one_call_at_a_time_and_a_slow_one_stalls_no_other(house: Installation) -> None:
    going, most = 0, 0
    release = asyncio.Event()

    @trigger(ref="post.slow", every=0.1)
    async def slow() -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await release.wait()
        going -= 1

    await house.apply(slow, letters)
    await house.executor()
    await house.executor()
    await house.worker(slow, letters)
    await house.until("select 1 from poll where trigger = 'post.slow' and running is not null")
    await house.until("select 1 from poll where trigger = 'post.letters' and found >= 4")
    assert most == 1
    calls = "select 1 from execution e join namespace n on n.id = e.namespace_id where n.action = 'post.slow'"
    assert len(await house.rows(calls)) == 1
    release.set()
    await house.until(f"{calls} offset 1")
    assert most == 1


async def test_an_error_is_kept_until_a_call_ends_well_and_the_state_with_it(house: Installation) -> None:
    broken = threading.Event()

    @trigger(ref="post.fragile", every=0.1)
    def fragile(state: dict[str, Any]) -> list[int]:
        if broken.is_set():
            state["lost"] = True
            raise ConnectionError("the post office is closed")
        state["seen"] = 1
        return []

    await house.start(fragile)
    await house.until("select 1 from poll where state ->> 'seen' = '1'")
    broken.set()
    [poll] = await house.until("select * from poll where failures >= 2")
    assert poll["error"] == "ConnectionError: the post office is closed"
    assert poll["state"] == '{"seen": 1}'
    broken.clear()
    [poll] = await house.until("select * from poll where error is null")
    assert poll["failures"] == 0


async def test_an_event_that_does_not_fit_is_a_dead_letter_and_the_others_are_events(
    house: Installation,
) -> None:
    @trigger(ref="post.mixed", every=3600, schema=SCHEMA)
    async def mixed() -> list[Any]:
        return [{"n": 1}, {"n": "two"}, {"n": 3}]

    await house.start(mixed)
    [poll] = await house.until("select * from poll where error is not null")
    assert poll["found"] == 2
    assert "1 of 3 events were refused" in poll["error"]
    [letter] = await house.rows("select * from dead_letter")
    assert (letter["queue"], letter["body"]) == ("event.received", b'{"n":"two"}')
    assert "payload of post.mixed" in letter["reason"]
    assert len(await house.rows("select from event")) == 2


async def test_a_poll_result_that_is_not_a_list_of_events_is_an_error(house: Installation) -> None:
    @trigger(ref="post.odd", every=3600)
    async def odd() -> str:
        return "a letter"

    await house.start(odd)
    [poll] = await house.until("select * from poll where error is not null")
    assert "as a list, not str" in poll["error"]


async def test_a_call_that_takes_too_long_is_ended(house: Installation) -> None:
    @trigger(ref="post.endless", every=3600, timeout=0.3)
    async def endless() -> None:
        await asyncio.sleep(600)

    await house.start(endless)
    [poll] = await house.until("select * from poll where error is not null")
    assert "0.3" in poll["error"]
    assert poll["running"] is None


async def test_a_call_whose_execution_is_gone_is_an_error_and_not_the_end(house: Installation) -> None:
    await house.apply(letters)
    await house.executor()
    await house.until("select 1 from poll where running is not null")
    await house.rows("update poll set running = gen_random_uuid() returning 1")
    await house.until("select 1 from poll where error like '%lost%'")
    await house.worker(letters)
    await house.until("select 1 from poll where found > 0 and error is null")


async def test_applying_again_keeps_the_state_and_a_trigger_may_stop_to_poll(house: Installation) -> None:
    await house.apply(letters)
    await house.rows(
        "update poll set state = '{\"n\": 41}', next_due = now() + interval '1 hour' returning 1"
    )

    @trigger(ref="post.letters", every=7200, schema=SCHEMA)
    async def other(state: dict[str, Any]) -> None: ...

    await house.apply(other)
    [poll] = await house.rows("select * from poll")
    assert (poll["every"], poll["state"]) == (7200, '{"n": 41}')
    await house.apply(Trigger("post.letters", schema=SCHEMA))
    assert await house.rows("select * from poll") == []


async def test_to_poll_takes_a_function(house: Installation) -> None:
    with pytest.raises(DefinitionError, match="no function"):
        await house.apply(Trigger("post.nothing", poll={"every": 5}))  # type: ignore[call-arg]
