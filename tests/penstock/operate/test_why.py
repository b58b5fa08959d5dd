"""The answers to "Why is it waiting?", each from the rows that make it true."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import SecretStr

from penstock import Limit
from penstock.errors import NotFound
from penstock.language.terms.ids import new_id
from penstock.operate.why import Why, why
from penstock.settings import Settings
from penstock.store.admission import admission_line
from penstock.store.executions.listed_waits import starts_of
from penstock.store.session.database import Database
from tests.penstock.store.admission.desk import Desk

ONE = Limit(1, ref="shop.one", scope="shop")
EXECUTOR = "insert into process (id, kind, name) values ($1, 'executor', 'executor-1') returning id"


@pytest.fixture
async def desk(database: str) -> AsyncIterator[Desk]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield Desk(home)
    await home.close()


@pytest.fixture
def ask(desk: Desk, database: str) -> Any:
    async def asked(id: UUID, broker: str | None = None, **more: Any) -> Why:
        settings = Settings(
            database_url=SecretStr(database), broker_url=SecretStr(broker) if broker else None, **more
        )
        answer = await why(desk.session, id, settings)
        orjson.dumps(answer.document(), default=str)
        assert answer.says[-1] not in " :,"
        assert answer.says.startswith(answer.sentence)
        return answer

    return asked


async def test_behind_a_limit_it_names_limit_holders_and_next_turn(desk: Desk, ask: Any) -> None:
    await desk.open(Limit(2, ref="shop.each", scope="shop.charge", by="customer"))
    ids = await desk.start(5, customer="acme")
    await desk.claim(ids[:1])
    answer = await ask(ids[4])
    assert (answer.because, answer.status) == ("limit", "queued")
    assert answer.facts["limit"] == "shop.each"
    assert answer.facts["group"] == {"customer": "acme"}
    assert (answer.facts["position"], answer.facts["held"]) == (3, 2)
    assert [holder["id"] for holder in answer.facts["holders"]] == ids[:2]
    assert [holder["worker"] for holder in answer.facts["holders"]] == ["worker", None]
    assert answer.facts["about_seconds"] is None
    for part in (
        "a slot of the limit shop.each for customer=acme",
        "3rd in line",
        "2 of 2 slots are in use",
        str(ids[0]),
        "on worker",
    ):
        assert part in answer.says
    assert "At the current pace" not in answer.says


@pytest.mark.parametrize("query", ["limits", "holders"])
async def test_a_row_that_is_gone_between_two_looks_is_not_an_error(
    desk: Desk, ask: Any, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """All that hold a slot end, or the limit goes, in the instant before the next query."""
    await desk.open(ONE)
    ids = await desk.start(2)
    look = getattr(admission_line, query)

    async def late(*given: Any) -> Any:
        await desk.session.fetch(f"delete from {'lane' if query == 'limits' else 'slot'}")
        return await look(*given)

    monkeypatch.setattr(admission_line, query, late)
    words = {"limits": "its limits have just changed", "holders": "A slot has just become free"}
    assert words[query] in (await ask(ids[1])).says


async def test_with_a_history_it_guesses_when_the_turn_comes(desk: Desk, ask: Any) -> None:
    await desk.open(ONE)
    ids = await desk.start(9)
    for id in ids[:4]:
        await desk.run([id])
    await desk.session.fetch("update lane set began_at = clock_timestamp() - interval '40 s' returning 1")
    answer = await ask(ids[8])
    assert answer.facts["position"] == 4
    assert answer.facts["about_seconds"] == pytest.approx(40, rel=0.2)
    assert "At the current pace it starts in about" in answer.says
    assert f"{ids[4]} (shop.charge) has held the only slot" in answer.says


async def test_priorities_and_turns_count_in_the_position(desk: Desk, ask: Any) -> None:
    await desk.open(Limit(1, ref="shop.one", scope="shop", fair="customer"))
    ids = await desk.start(5, customer="big")
    [small] = await desk.start(1, customer="small")
    [urgent] = await desk.start(1, customer="big", priority=3)
    assert [(await ask(id)).facts["position"] for id in (urgent, ids[1], small, ids[2])] == [1, 2, 3, 4]
    assert "take turns" in (await ask(small)).says


async def test_that_another_limit_is_needed_too_is_said(desk: Desk, ask: Any) -> None:
    await desk.open(
        Limit(1, ref="shop.each", scope="shop.charge", by="customer"), Limit(5, ref="ops.all", scope="*")
    )
    ids = await desk.start(2, customer=7)
    assert "It also needs a slot of the limit ops.all (1 of 5 in use)." in (await ask(ids[1])).says


async def test_behind_a_rate_it_says_when_the_next_may_start(desk: Desk, ask: Any) -> None:
    await desk.open(Limit(rate="1/min", ref="shop.rated", scope="shop"))
    ids = await desk.start(2)
    answer = await ask(ids[1])
    assert answer.because == "rate"
    assert 50 < answer.facts["next_look"] <= 60
    assert "rate limit shop.rated (1 start in 60 s)" in answer.says


async def test_while_limits_change_it_says_so(desk: Desk, ask: Any) -> None:
    await desk.open(ONE)
    ids = await desk.start(2)
    await desk.apply(Limit(1, ref="shop.one", scope="shop", by="customer"))
    assert (await ask(ids[1])).because == "outage"
    await desk.session.fetch(EXECUTOR, new_id())
    assert (await ask(ids[1])).because == "regroup"
    ids += await desk.start(1, "shop.refund")  # in a lane of its own, which was never marked
    assert (await ask(ids[2])).because == "regroup"
    assert (await starts_of(desk.session, ids[2:], 30))[0].gate == "regroup"


@pytest.mark.parametrize("limited", [False, True])
async def test_without_a_worker_it_says_which_one_is_missing(desk: Desk, ask: Any, limited: bool) -> None:
    await desk.open(*([ONE] if limited else []), worker=False)
    [id] = await desk.start(1)
    answer = await ask(id)
    assert answer.because == "worker"
    assert "serves the route default and has shop.charge: no worker is online" in answer.says
    other = await desk.hire("shop.refund")
    assert "1 worker serves this route, but lacks the action" in (await ask(id)).says
    await desk.dismiss(other)
    await desk.hire("shop.charge", route="gpu")
    assert "1 worker has the action, but serves other routes" in (await ask(id)).says
    away = await desk.hire("shop.charge")
    await desk.session.fetch("update process set state = 'cordoned' where id = $1 returning 1", away)
    assert "1 worker could run it, but takes no new work" in (await ask(id)).says
    assert "penstock worker --module FILE --routes default" in (await ask(id)).says


async def test_on_its_route_it_says_whether_workers_are_busy(desk: Desk, ask: Any) -> None:
    await desk.open()
    ids = await desk.start(3)
    await desk.session.fetch("update process set concurrency = 1 returning 1")
    answer = await ask(ids[2])
    assert (answer.because, answer.facts["before"]) == ("route", 2)
    assert "for a worker to claim it: 1 worker can run it" in answer.says
    await desk.session.fetch("update process set holding = array[$1::uuid] returning 1", new_id())
    assert "all slots were in use" in (await ask(ids[2])).says


async def test_a_message_that_the_broker_does_not_take_is_an_outage(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.start(1)
    await desk.session.fetch(
        "update outbox set created_at = created_at - interval '90 s', tries = 2, error = 'not confirmed' returning 1"
    )
    answer = await ask(id, broker="amqp://nowhere")
    assert answer.because == "outage"
    assert (
        "for the broker, which has not accepted its message for 90 s, tried 2 times (not confirmed)"
        in answer.says
    )
    assert (await ask(id)).because == "route"  # where PostgreSQL carries, the row is the queue


async def test_without_an_executor_nothing_is_scheduled(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.request(1)
    answer = await ask(id)
    assert answer.because == "outage"
    assert "penstock executor" in answer.says
    await desk.session.fetch(EXECUTOR, new_id())
    assert (await ask(id)).because == "message"
    await desk.session.fetch("update outbox set created_at = created_at - interval '1 min' returning 1")
    assert (await ask(id, broker="amqp://nowhere")).because == "outage"


async def test_before_a_retry_it_gives_the_error_and_the_instant(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.start(1)
    await desk.claim([id])
    await desk.session.fetch(
        "select * from finish_attempts($1, array[$2::uuid], '{1}', '{requested}', null, array[$3], '{30}', null, null, "
        "'{}', '{}')",
        desk.worker,
        id,
        '{"type": "ConnectionError", "message": "the bank is closed"}',
    )
    answer = await ask(id)
    assert (answer.because, answer.facts["timer"]) == ("timer", "retry")
    assert answer.sentence.startswith("Waits for attempt 2, which is due in ")
    assert "attempt 1 failed (ConnectionError: the bank is closed)." in answer.sentence


async def test_a_deferral_and_a_delay_are_told_apart(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.start(1)
    await desk.claim([id])
    await desk.session.fetch(
        "select * from finish_attempts($1, array[$2::uuid], '{1}', '{requested}', array['{\"state\": 1}'], null, '{30}', "
        "null, null, '{}', '{}')",
        desk.worker,
        id,
    )
    assert (await ask(id)).facts["timer"] == "defer"
    [delayed] = await desk.request(1)
    await desk.session.fetch("delete from outbox returning 1")
    await desk.session.fetch(
        "insert into timer (due_at, kind, execution_id) values (now() + interval '1 h', 'ready', $1) returning 1",
        delayed,
    )
    assert (await ask(delayed)).facts["timer"] == "not_before"


async def test_while_it_runs_it_says_where_and_whether_that_worker_is_heard_of(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.start(1)
    await desk.claim([id])
    answer = await ask(id)
    assert answer.because == "running"
    assert answer.sentence.startswith("Has run on worker for ")
    await desk.session.fetch(
        "update process set beat_at = beat_at - interval '50 s', started_at = started_at - interval '60 s' returning 1"
    )
    answer = await ask(id)
    assert answer.facts["silent"] >= 50
    assert "the last heartbeat of that worker was" in answer.says
    await desk.cancel([id])
    answer = await ask(id)
    assert (answer.because, answer.status) == ("stopping", "canceling")
    assert "Is being stopped (asked)" in answer.says


async def test_an_inquiry_is_quoted_with_its_assignee(desk: Desk, ask: Any) -> None:
    await desk.open()
    [id] = await desk.start(1)
    await desk.claim([id])
    await desk.finish([id], "waiting")
    await desk.session.fetch("update inquiry set prompt = 'Deploy?', assignee = 'ops' returning 1")
    answer = await ask(id)
    assert answer.because == "inquiry"
    assert answer.sentence.startswith("Waits for an answer from ops: ")
    assert "Deploy?" in answer.says


async def test_an_ended_execution_waits_for_nothing(desk: Desk, ask: Any) -> None:
    await desk.open()
    ids = await desk.start(2)
    await desk.run(ids[:1])
    await desk.cancel(ids[1:])
    assert (await ask(ids[0])).sentence.startswith("Completed ")
    answer = await ask(ids[1])
    assert (answer.because, answer.facts["reason"]) == ("ended", "asked")
    assert answer.sentence.endswith(" ago: asked.")


async def test_a_missing_execution_is_not_found(ask: Any) -> None:
    with pytest.raises(NotFound, match="no execution"):
        await ask(new_id())
