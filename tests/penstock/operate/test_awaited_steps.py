"""The waits of a durable function, as its records and its children tell them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import orjson
import pytest

from penstock.engine.durable.records import (
    ASK,
    COMPLETED,
    MAP,
    RUN,
    SIGNAL,
    SLEEP,
    STARTED,
    STEP,
    VALUE,
    WAIT_FOR,
    Key,
)
from penstock.operate.awaited_steps import StepWait, instant, served_deadlines, waits
from penstock.store.durable.steps import ChildWait, OpenRun, StoredStep
from penstock.store.session.database import Session

NOW = datetime(2030, 1, 31, 9, tzinfo=UTC)
BEGUN, SUSPENDED, LATER = NOW - timedelta(hours=2), NOW - timedelta(hours=1), NOW + timedelta(hours=1)
ID = UUID(int=7)


def stored(
    name: str,
    kind: str = SLEEP,
    *,
    ordinal: int = 1,
    place: int = 1,
    status: str = STARTED,
    tries: int = 0,
    at: datetime = BEGUN,
    until: datetime | None = None,
    asked_after: int = 0,
    told: int | None = None,
) -> StoredStep:
    result = None if until is None else orjson.dumps({"until": until.isoformat()}).decode()
    return StoredStep(
        ID, name, ordinal, place, kind, status, tries, 1, 0.0, at, result, None, asked_after, told
    )


def open_run(*signals: Key, since: datetime | None = SUSPENDED) -> OpenRun:
    return OpenRun(
        "shop.ship", NOW, since, orjson.dumps([list(key) for key in signals]).decode() if signals else None
    )


def child(name: str, **values: Any) -> ChildWait:
    """Return the open child of a step, which waits for nothing unless `values` say so."""
    nothing = {"until": None, "prompt": None, "assignee": None, "trigger": None, "params": None}
    return ChildWait(**{"name": name, "ordinal": 1, "tenant": "", "since": SUSPENDED, **nothing, **values})


SECRET_PIN = {"type": "object", "properties": {"pin": {"type": "string", "secret": True}}}
SECRETS = [
    {"kind": kind, "ref": ref, "body": orjson.dumps({word: SECRET_PIN}).decode()}
    for kind, ref, word in (("action", "shop.ship", "parameters"), ("trigger", "shop.paid", "schema"))
]
"""The definitions that mark a value as secret."""


async def waits_of(
    recorded: Sequence[StoredStep], run: OpenRun | None = None, children: Sequence[ChildWait] = ()
) -> dict[Key, StepWait]:
    """Return the waits of a run whose open children the database answers."""
    rows = [{name: getattr(wait, name) for name in ChildWait.__slots__} for wait in children]

    async def fetch(sql: str, *args: object) -> list[dict[str, Any]]:
        assert args in ((ID,), ())
        return rows if args else SECRETS

    return await waits(cast(Session, SimpleNamespace(fetch=fetch)), ID, run or open_run(), recorded)


@pytest.mark.parametrize(
    "result", [None, 5, [], {}, {"until": None}, {"until": 5}, {"until": "soon"}, "2030-01-31T09:00:00+00:00"]
)
def test_record_without_instant_has_the_other_one(result: Any) -> None:
    assert instant(result, LATER) is LATER


def test_record_names_its_instant() -> None:
    assert instant({"until": "2030-01-31T09:00:00+00:00"}, LATER) == NOW


SERVED: dict[str, tuple[list[StoredStep], set[str]]] = {
    "signal after its deadline": (
        [stored("timeout of paid"), stored("signal/paid", SIGNAL, told=1)],
        {"timeout of paid"},
    ),
    "deadline of a branch": (
        [stored("2/timeout of paid"), stored("signal/paid", SIGNAL, told=1)],
        {"2/timeout of paid"},
    ),
    "signal before its deadline": (
        [stored("timeout of paid", asked_after=1), stored("signal/paid", SIGNAL, told=1)],
        set(),
    ),
    "signal that was not received": (
        [stored("timeout of paid"), stored("signal/paid", SIGNAL)],
        set(),
    ),
    "signal of another name": (
        [stored("timeout of paid"), stored("signal/sent", SIGNAL, told=1)],
        set(),
    ),
    "deadline that has passed": (
        [stored("timeout of paid", status=COMPLETED), stored("signal/paid", SIGNAL, told=1)],
        set(),
    ),
    "step with the name of a deadline": (
        [stored("timeout of paid", STEP), stored("signal/paid", SIGNAL, told=1)],
        set(),
    ),
    "step that was delivered": (
        [stored("timeout of paid"), stored("signal/paid", STEP, told=1)],
        set(),
    ),
    "sleep with another name": (
        [stored("paid"), stored("signal/paid", SIGNAL, told=1)],
        set(),
    ),
    "one signal of two deadlines": (
        [
            stored("2/timeout of paid", asked_after=1),
            stored("1/timeout of paid"),
            stored("signal/paid", SIGNAL, told=2),
        ],
        {"1/timeout of paid"},
    ),
    "two deadlines at one number": (
        [
            stored("2/timeout of paid", at=NOW),
            stored("1/timeout of paid", at=BEGUN),
            stored("signal/paid", SIGNAL, told=2),
        ],
        {"1/timeout of paid"},
    ),
    "two deadlines at one instant": (
        [
            stored("timeout of paid", ordinal=2, place=4),
            stored("1/timeout of paid", place=3),
            stored("signal/paid", SIGNAL, told=2),
        ],
        {"1/timeout of paid"},
    ),
    "two signals in the order of their delivery": (
        [
            stored("1/timeout of paid"),
            stored("2/timeout of paid", asked_after=2),
            stored("signal/paid", SIGNAL, ordinal=2, told=3),
            stored("signal/paid", SIGNAL, told=1),
        ],
        {"1/timeout of paid", "2/timeout of paid"},
    ),
    "two deadlines of two signals": (
        [
            stored("timeout of late"),
            stored("timeout of paid"),
            stored("signal/paid", SIGNAL, told=1),
            stored("signal/late", SIGNAL, told=2),
        ],
        {"timeout of late", "timeout of paid"},
    ),
}
"""By case: the records, and the names of the deadlines whose signal has come in time."""


@pytest.mark.parametrize("case", SERVED)
def test_signal_serves_the_first_deadline_that_it_met(case: str) -> None:
    recorded, served = SERVED[case]
    assert served_deadlines(recorded) == {Key(name, 1) for name in served}


async def test_sleeps_and_deadlines_end_at_their_instants() -> None:
    recorded = [
        stored("2/1/sleep", until=LATER),
        stored("sleep", ordinal=2, until=LATER),
        stored("1/2/timeout", until=LATER),
        stored("timeout of paid", until=LATER),
        stored("charge", STEP, tries=1, until=LATER),
    ]
    assert await waits_of(recorded) == {
        Key("2/1/sleep", 1): StepWait(BEGUN, LATER, "the end of the sleep"),
        Key("sleep", 2): StepWait(BEGUN, LATER, "the end of the sleep"),
        Key("1/2/timeout", 1): StepWait(BEGUN, LATER, "the end of its block, or this deadline"),
        Key("timeout of paid", 1): StepWait(BEGUN, LATER, "the signal paid, or this deadline"),
        Key("charge", 1): StepWait(BEGUN, LATER, "its attempt 2"),
    }


async def test_finished_or_due_step_does_not_wait() -> None:
    recorded = [
        stored("over", status=COMPLETED, until=LATER),
        stored("due", until=NOW),
        stored("timeout", until=NOW),
        stored("past", until=SUSPENDED),
        stored("charge", STEP, tries=1),
        stored("random", VALUE, until=LATER),
    ]
    assert await waits_of(recorded) == {}


async def test_step_with_a_child_waits_as_its_child_does() -> None:
    recorded = [
        stored("charge", RUN),
        stored("charge_all", MAP, ordinal=2),
        stored("ship", ASK),
        stored("pack", ASK),
        stored("paid", WAIT_FOR),
        stored("no_child", RUN),
        stored("over", RUN, status=COMPLETED),
    ]
    children = [
        child("charge", until=LATER, prompt="Is it a test?"),
        child("charge_all", ordinal=2),
        child("ship", prompt="Ship it?", assignee="ada", until=LATER),
        child("pack", prompt="Pack it?"),
        child("paid"),
        child("over"),
        child("unrecorded"),
    ]
    assert await waits_of(recorded, children=children) == {
        Key("charge", 1): StepWait(SUSPENDED, LATER, "the end of its child execution"),
        Key("charge_all", 2): StepWait(SUSPENDED, None, "the end of its child execution"),
        Key("ship", 1): StepWait(SUSPENDED, LATER, "an answer from ada: Ship it?"),
        Key("pack", 1): StepWait(SUSPENDED, None, "an answer: Pack it?"),
        Key("paid", 1): StepWait(SUSPENDED, None, "an executor, which begins the wait or has just ended it"),
    }


PAID, PAID_AGAIN, SENT = Key("signal/paid", 1), Key("signal/paid", 2), Key("signal/sent", 1)


async def test_signal_without_deadline_waits_since_the_suspension() -> None:
    assert await waits_of([], open_run(PAID, SENT)) == {
        PAID: StepWait(SUSPENDED, None, "the signal paid"),
        SENT: StepWait(SUSPENDED, None, "the signal sent"),
    }
    assert await waits_of([], open_run(PAID, since=None)) == {PAID: StepWait(NOW, None, "the signal paid")}


async def test_signals_have_the_deadlines_of_their_order() -> None:
    first, second = NOW + timedelta(hours=3), NOW + timedelta(hours=2)
    recorded = [
        stored("2/timeout of paid", at=SUSPENDED, until=second, asked_after=1),
        stored("1/timeout of paid", until=first),
        stored("timeout of sent"),
    ]
    found = await waits_of(recorded, open_run(PAID_AGAIN, SENT, PAID))
    assert {key: found[key] for key in (PAID, PAID_AGAIN, SENT)} == {
        PAID: StepWait(BEGUN, first, "the signal paid"),
        PAID_AGAIN: StepWait(SUSPENDED, second, "the signal paid"),
        SENT: StepWait(BEGUN, NOW, "the signal sent"),
    }


@pytest.mark.parametrize(
    ("earlier", "later"),
    [({"at": BEGUN, "place": 9}, {"at": SUSPENDED, "place": 1}), ({"place": 1}, {"place": 2})],
)
async def test_deadlines_at_one_number_follow_time_and_place(
    earlier: dict[str, Any], later: dict[str, Any]
) -> None:
    first, second = NOW + timedelta(hours=3), NOW + timedelta(hours=2)
    recorded = [
        stored("2/timeout of paid", until=second, **later),
        stored("1/timeout of paid", until=first, **earlier),
    ]
    found = await waits_of(recorded, open_run(PAID, PAID_AGAIN))
    assert (found[PAID].until, found[PAID_AGAIN].until) == (first, second)


async def test_signals_of_which_one_has_no_deadline_show_none() -> None:
    found = await waits_of([stored("timeout of paid", until=LATER)], open_run(PAID, PAID_AGAIN))
    assert {found[PAID], found[PAID_AGAIN]} == {StepWait(SUSPENDED, None, "the signal paid")}


async def test_event_is_shown_with_its_filter_and_without_secrets() -> None:
    compared = ("order == order", "code == parameters.pin", "pin == order")
    filter = " and ".join(f"event.payload.{words}" for words in compared)
    stored_filter = {"filter": filter, "bound": {"order": 42, "parameters": {"pin": "1234"}}}
    recorded = [stored("paid", WAIT_FOR), stored("any", WAIT_FOR), stored("ask", ASK)]
    children = [
        child("paid", trigger="shop.paid", params=orjson.dumps(stored_filter).decode(), until=LATER),
        child("any", trigger="shop.sent"),
        child("ask"),
    ]
    assert await waits_of(recorded, children=children) == {
        Key("paid", 1): StepWait(
            SUSPENDED, LATER, "an event of shop.paid where order = 42 and code = *** and pin = ***"
        ),
        Key("any", 1): StepWait(SUSPENDED, None, "an event of shop.sent"),
        Key("ask", 1): StepWait(SUSPENDED, None, "an executor, which begins the wait or has just ended it"),
    }
