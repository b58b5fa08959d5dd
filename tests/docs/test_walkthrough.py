"""docs/walkthrough.md names functions that one event really passes, in that order."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from penstock import Rule, Trigger, action
from tests.flows.installation import Installation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/walkthrough.md").read_text()
STOPS = re.findall(r"^\d+\. `((?:common|services)/[\w/]+\.py)` `([\w.]+)`", PAGE, re.M)
MEANWHILE = set(re.findall(r"^\d+\. `(\S+?)` `([\w.]+)`.*\*meanwhile\*", PAGE, re.M))
STEPS = re.findall(r"^\d+\. ", PAGE, re.M)

placed = Trigger("walk.placed")


@action(pack="walk")
async def charge(order: int) -> str:
    return f"charged {order}"


RULE = Rule(
    "walk.charge",
    trigger=placed,
    when="payload.total > 10",
    action=charge,
    params={"order": "{{ payload.id }}"},
)


@contextmanager
def calls_recorded() -> Iterator[list[tuple[str, str]]]:
    """Record every call of a named function, in order, in all threads."""
    calls: list[tuple[str, str]] = []
    wanted = {(str(ROOT / file), name): (file, name) for file, name in STOPS}

    def record(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and (stop := wanted.get((code.co_filename, code.co_qualname))):
            calls.append(stop)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_each_step_names_a_function() -> None:
    assert len(STOPS) == len(STEPS) > 20
    assert len(MEANWHILE) == 2


def test_each_file_that_it_names_is_there() -> None:
    named = re.findall(r"`((?:common|services|migrations|tests)/[\w/.]+?)/?`", PAGE)
    assert [file for file in named if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("transport", ["rabbitmq"], indirect=True)
async def test_an_event_passes_the_stops_in_order(house: Installation) -> None:
    await house.start(charge, placed, RULE)
    await house.until("select from permit having count(*) > 0")
    with calls_recorded() as calls:
        await house.client.publish("walk.placed", {"id": 7, "total": 12})
        async with asyncio.timeout(30):
            while not await house.rows("select from execution where status = 'completed'"):
                await asyncio.sleep(0.01)
            while STOPS[-1] not in calls:
                await asyncio.sleep(0.01)
    missing = [stop for stop in STOPS if stop not in calls]
    assert missing == [], "never called"
    place = 0
    for stop in STOPS:
        assert stop in calls[place:], f"{stop} is not called after what stands before it"
        if stop not in MEANWHILE:
            place = calls.index(stop, place) + 1
