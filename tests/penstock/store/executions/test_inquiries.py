"""Inquiries: the one answer that counts, its effect, and the inquiries without an answer in time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from tests.penstock.store.members import SOON
from tests.penstock.store.mending import limit, slot, there
from tests.penstock.store.stand import Stand

HOUR = timedelta(hours=1)


async def asks(
    stand: Stand,
    name: str,
    *,
    late: timedelta | None = None,
    default: str | None = None,
    status: str = "waiting",
    resumes: bool = False,
    asked: str = "created",
) -> UUID:
    """An execution that waits for an answer. `late`: since when the answer is due; `resumes`: it goes on with it."""
    id = await stand.add(name, status, attempt=2)
    await stand.sql(
        "insert into inquiry (execution_id, status, prompt, due_at, default_answer)"
        " values ($1, $2, 'Ship it?', clock_timestamp() - $3::interval, $4::text::jsonb)",
        *(id, asked, late, default),
    )
    for attempt, outcome in ((1, "failed"), (2, "waiting")):
        carry = {"carry": {"resume": {"state": f"{name}{attempt}", "answers": ["before"]}}} if resumes else {}
        await stand.sql(
            "insert into attempt (execution_id, attempt, outcome, error) values ($1, $2, $3, $4::text::jsonb)",
            *(id, attempt, outcome, orjson.dumps(carry).decode()),
        )
    return id


async def answer(stand: Stand, name: str, value: object) -> tuple[bool, list[str]]:
    """Answer an inquiry. Returns true if it was the answer that counted, and the staged messages."""
    [row] = await stand.sql(
        "select moved, messages from answer_inquiry($1, $2, 'ops')",
        stand.ids[name],
        orjson.dumps(value).decode(),
    )
    assert row["moved"] in ([], [stand.ids[name]])
    return bool(row["moved"]), sorted(message["queue"] for message in row["messages"])


async def inquiries(stand: Stand) -> dict[str, tuple[Any, ...]]:
    found = await stand.sql("select execution_id, status, responder, response::text as response from inquiry")
    names = {id: name for name, id in stand.ids.items()}
    return {names[row["execution_id"]]: (row["status"], row["responder"], row["response"]) for row in found}


async def test_the_first_answer_counts_and_is_the_result_of_its_own_execution(stand: Stand) -> None:
    await asks(stand, "a")
    await asks(stand, "b")
    assert await answer(stand, "a", {"ok": True}) == (True, ["execution.completed", "inquiry.responded"])
    assert await answer(stand, "a", {"ok": False}) == (False, [])
    assert await inquiries(stand) == {"a": ("responded", "ops", '{"ok": true}'), "b": ("created", None, None)}
    assert await stand.with_status("completed") == {"a"}
    [row] = await stand.sql("select execution_id, result::text as result from result")
    assert (row["execution_id"], row["result"]) == (stand.ids["a"], '{"ok": true}')
    [row] = await stand.sql("select reason, since from execution where status = 'completed'")
    assert row["reason"] == "answered by ops"


async def attempts(stand: Stand, name: str) -> list[Mapping[str, Any]]:
    found = await stand.sql(
        "select error::text as error from attempt where execution_id = $1 order by attempt", stand.ids[name]
    )
    return [orjson.loads(row["error"]) for row in found]


async def test_an_answered_function_is_requested_with_all_answers(stand: Stand) -> None:
    await asks(stand, "b", resumes=True)
    await asks(stand, "a", resumes=True)
    moved, staged = await answer(stand, "a", 7)
    assert (moved, sorted(staged)) == (True, ["inquiry.responded", "work.default"])
    assert await stand.with_status("scheduled") == {"a"}
    old, last = await attempts(stand, "a")
    assert last == {"carry": {"state": "a2", "answers": ["before", 7]}}
    others = [one["carry"]["resume"] for one in (old, *await attempts(stand, "b"))]
    assert others == [{"state": state, "answers": ["before"]} for state in ("a1", "b1", "b2")]
    assert await inquiries(stand) == {"a": ("responded", "ops", "7"), "b": ("created", None, None)}
    assert await answer(stand, "a", 8) == (False, [])
    [row] = await stand.sql("select since, not_before, reason from execution where status = 'scheduled'")
    assert tuple(row) == (None, None, "answered by ops")
    assert await stand.sql("select from result") == []


async def test_an_answered_execution_frees_its_slot_until_it_goes_on(stand: Stand) -> None:
    key = await limit(stand)
    for name in "ab":
        await asks(stand, name, resumes=True)
        await slot(stand, key, name)
    await stand.sql("update execution set keys = array[($1, '')::limit_key]", key)
    assert (await answer(stand, "a", 7))[0]
    assert await there(stand, "slot") == {"b"}


async def test_an_execution_that_has_ended_meanwhile_does_not_go_on(stand: Stand) -> None:
    await asks(stand, "a", resumes=True, status="cancelled")
    assert await answer(stand, "a", 7) == (False, [])
    assert len((await attempts(stand, "a"))[1]["carry"]) == 1


async def test_the_first_answer_begins_the_list(stand: Stand) -> None:
    await asks(stand, "a", resumes=True)
    await stand.sql('update attempt set error = \'{"carry": {"resume": {}}}\'')
    assert (await answer(stand, "a", 7))[0]
    assert (await attempts(stand, "a"))[1] == {"carry": {"answers": [7]}}


async def test_how_another_asked_does_not_count(stand: Stand) -> None:
    await asks(stand, "a")
    await asks(stand, "b", resumes=True)
    assert (await answer(stand, "a", 7))[0]
    assert await stand.with_status("completed") == {"a"}


async def test_an_attempt_before_the_last_one_that_asked_to_go_on_counts_for_nothing(stand: Stand) -> None:
    await asks(stand, "a")
    await stand.add("in its first attempt", "running", attempt=1)
    await stand.sql(
        "update attempt set error = '{\"carry\": {\"resume\": {}}}', outcome = 'waiting' where attempt = 1"
    )
    assert (await answer(stand, "a", 1))[0]
    assert await stand.with_status("completed") == {"a"}


async def test_an_attempt_that_ended_otherwise_does_not_go_on(stand: Stand) -> None:
    await asks(stand, "a", resumes=True)
    await stand.sql("update attempt set outcome = 'lost'")
    assert (await answer(stand, "a", 1))[0]
    assert await stand.with_status("completed") == {"a"}


async def expire(stand: Stand, limit: int = 100) -> set[str]:
    [row] = await stand.sql("select expired, messages from expire_inquiries($1)", limit)
    assert row["messages"] is not None
    return stand.names(row["expired"])


async def test_only_those_that_are_due_end_by_their_default_if_they_have_one(stand: Stand) -> None:
    await asks(stand, "late", late=HOUR)
    await asks(stand, "with a default", late=HOUR, default='"yes"')
    await asks(stand, "due later", late=-HOUR, default='"yes"')
    await asks(stand, "never due")
    await asks(stand, "answered", late=HOUR, asked="responded")
    await asks(stand, "that goes on", late=HOUR, status="running", default='"yes"')
    assert await expire(stand) == {"late", "with a default"}
    assert await stand.with_status("timeout") == {"late"}
    assert await stand.with_status("completed") == {"with a default"}
    assert await stand.with_status("waiting") == {"due later", "never due", "answered"}
    found = await inquiries(stand)
    assert found["late"] == ("timeout", None, None)
    assert found["with a default"] == ("responded", "its default", '"yes"')
    assert {found[name][0] for name in ("due later", "never due", "that goes on")} == {"created"}
    [row] = await stand.sql("select reason from execution where status = 'timeout'")
    assert row["reason"] == "its inquiry got no answer in time"
    assert await expire(stand) == set()


async def test_those_that_are_due_first_expire_first_and_so_many(stand: Stand) -> None:
    for n, name in enumerate("abc"):
        await asks(stand, name, late=timedelta(minutes=n + 1))
    await stand.sql("analyze inquiry, execution")  # so few that all are read, as they lie
    assert await expire(stand, 2) == {"b", "c"}
    assert await expire(stand, 2) == {"a"}


async def test_an_ended_inquiry_takes_no_place_in_the_batch(stand: Stand) -> None:
    await asks(stand, "that ended", late=2 * HOUR, status="cancelled")
    await asks(stand, "late", late=HOUR)
    assert await expire(stand, 1) == {"late"}


async def test_no_key_of_another_is_waited_for(stand: Stand) -> None:
    held, free = await limit(stand), await limit(stand, "free")
    await asks(stand, "late", late=HOUR, default="1")
    await asks(stand, "due later", late=-HOUR)
    for name, key in (("late", free), ("due later", held)):
        await stand.sql(
            "update execution set keys = array[($2, '')::limit_key] where id = $1", stand.ids[name], key
        )
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select lock_keys(array[($1, '')::limit_key])", held)
        await stand.sql("set lock_timeout = '5s'")
        assert await expire(stand) == {"late"}


async def test_the_keys_of_all_that_expire_are_locked_in_one_order(stand: Stand) -> None:
    for ref in ("l", "another"):
        await limit(stand, ref)
    low, high = await stand.sql("select id, key_lock((id, '')) as lock from concurrency_limit order by 2")
    for name, key in (("first", high), ("second", low)):
        await asks(stand, name, late=HOUR, default="1")
        await stand.sql(
            "update execution set keys = array[($2, '')::limit_key] where id = $1", stand.ids[name], key["id"]
        )
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select pg_advisory_xact_lock(7, $1)", low["lock"])
        expiring = asyncio.create_task(stand.home.session().fetch("select expired from expire_inquiries(10)"))
        async with asyncio.timeout(SOON):
            while not await tx.fetch("select from pg_locks where not granted"):
                await asyncio.sleep(0.01)
        [[free]] = await stand.sql("select pg_try_advisory_xact_lock(7, $1)", high["lock"])
    assert free, "it may be somebody's who waits for the lower one"
    assert stand.names((await expiring)[0]["expired"]) == {"first", "second"}


async def test_one_that_is_being_answered_is_left_alone(stand: Stand) -> None:
    for name in "ab":
        await asks(stand, name, late=HOUR)
    async with stand.home.session().transaction() as tx:
        await tx.fetch("select from execution where id = $1 for update", stand.ids["a"])
        await stand.sql("set lock_timeout = '5s'")
        assert await expire(stand) == {"b"}


async def ask(stand: Stand, *names: str, **asked: object) -> set[str]:
    """Return the inquiries that were announced."""
    [row] = await stand.sql(
        "select ask_inquiries($1::uuid[], array(select x::jsonb from unnest($2::text[]) x)) as messages",
        *(
            [stand.ids[name] for name in names],
            [orjson.dumps({"prompt": "Ship?", **asked}).decode()] * len(names),
        ),
    )
    assert {message["queue"] for message in row["messages"]} <= {"inquiry.created"}
    return stand.names([id for message in row["messages"] for id in message["ids"]])


async def test_each_asks_once_until_it_is_answered_and_may_ask_again_then(stand: Stand) -> None:
    await asks(stand, "other")
    await stand.add("new", "waiting")
    await stand.add("told by its options", "waiting", options={"timeouts": {"waiting": 60}})
    assert await ask(stand, "new", "told by its options") == {"new", "told by its options"}
    found = await stand.sql("select execution_id, due_at from inquiry where due_at is not null")
    assert stand.names([row["execution_id"] for row in found]) == {"told by its options"}
    await ask(stand, "new", prompt="Again?", timeout=5)
    [row] = await stand.sql("select prompt, due_at from inquiry where execution_id = $1", stand.ids["new"])
    assert tuple(row) == ("Ship?", None), "what is asked is not changed"
    await stand.sql(
        "update inquiry set status = 'responded', response = '1', responder = 'ops', answered_at = now()"
    )
    assert await ask(
        stand, "new", prompt="Again?", timeout=5, assignee="me", default=3, schema={"type": "integer"}
    ) == {"new"}
    [row] = await stand.sql(
        "select prompt, assignee, default_answer::text, schema::text, due_at is not null, response, responder, answered_at,"
        " status from inquiry where execution_id = $1",
        stand.ids["new"],
    )
    assert tuple(row) == ("Again?", "me", "3", '{"type": "integer"}', True, None, None, None, "created")
