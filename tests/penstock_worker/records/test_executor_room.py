"""The room of task executors, with claimed work that has not begun."""

from __future__ import annotations

from uuid import UUID

from penstock_worker.executors.python.async_ import AsyncExecutor
from penstock_worker.records.executor_room import ExecutorRoom

CLAIM, OTHER = UUID(int=1), UUID(int=2)
SLOTS = 10


def test_only_those_are_named_that_have_less_room_than_is_asked_for() -> None:
    room = ExecutorRoom({"narrow": AsyncExecutor(capacity=2), "wide": AsyncExecutor(capacity=9)}, SLOTS)
    assert room.promise(CLAIM, 9) == {"narrow": 2}
    assert room.promise(CLAIM, 2) == {}


def test_work_given_to_an_executor_counts_before_it_begins() -> None:
    executor = AsyncExecutor(capacity=3)
    room = ExecutorRoom({"async": executor}, SLOTS)
    room.give("async")
    room.give("async")
    assert room.promise(CLAIM, 9) == {"async": 1}
    executor._tally.start()
    assert room.promise(CLAIM, 9) == {"async": 1}
    room.give("async")
    assert room.promise(CLAIM, 9) == {"async": 0}


def test_a_leaked_attempt_holds_its_place_after_its_end() -> None:
    executor = AsyncExecutor(capacity=3)
    room = ExecutorRoom({"async": executor}, SLOTS)
    room.give("async")
    executor._tally.start()
    executor._tally.leaked = 1
    room.take_back("async")
    assert room.promise(CLAIM, 9) == {"async": 2}
    room.give("async")
    assert room.promise(CLAIM, 9) == {"async": 1}


def test_room_promised_to_an_open_claim_is_promised_to_no_other() -> None:
    room = ExecutorRoom({"narrow": AsyncExecutor(capacity=2), "wide": AsyncExecutor(capacity=9)}, SLOTS)
    assert room.promise(CLAIM, 1) == {}
    assert room.promise(OTHER, 5) == {"narrow": 1}
    assert room.promise(OTHER, 9) == {"narrow": 1, "wide": 8}
    room.over(CLAIM)
    assert room.promise(OTHER, 9) == {"narrow": 2}
    assert room.promise(CLAIM, 9) == {"narrow": 0, "wide": 0}
    room.over(OTHER)
    assert room.promise(CLAIM, 9) == {"narrow": 2}


def test_one_with_a_place_for_every_slot_is_never_short_of_room() -> None:
    executor = AsyncExecutor(capacity=SLOTS)
    room = ExecutorRoom({"async": executor}, SLOTS)
    assert room.promise(CLAIM, SLOTS) == room.promise(OTHER, SLOTS) == {}
    room.give("async")
    executor._tally.start()
    assert room.promise(CLAIM, SLOTS) == {}
    executor._tally.leaked = 1
    room.take_back("async")
    assert room.promise(CLAIM, SLOTS) == {"async": SLOTS - 1}
