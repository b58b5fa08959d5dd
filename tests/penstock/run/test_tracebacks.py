"""Tracebacks of failed actions, which show the user's lines, and none of Penstock's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from penstock.errors import StepFailed
from penstock.language.terms.durations import seconds
from penstock.run.calls import call, call_plain
from penstock.run.outcomes import TaskError
from penstock.run.tracebacks import traceback_text
from tests.penstock.run.test_capture import installed
from tests.penstock_worker.executors.runs import run_of

STEP_TRACEBACK = "Traceback (most recent call last):\n  File \"glue.py\", line 3, in glue\nKeyError: 'glue'\n"


def _caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("the function raised nothing")


def _files(trace: str) -> list[str]:
    return [line.split('"')[1] for line in trace.splitlines() if line.startswith("  File ")]


def _lookup() -> None:
    raise KeyError("glue")


async def test_action_in_a_thread_shows_only_its_lines() -> None:
    run, _ = run_of(_lookup)
    error = (await asyncio.to_thread(call_plain, run)).error
    assert error is not None
    assert _files(error.traceback) == [__file__]
    assert 'raise KeyError("glue")' in error.traceback


def test_frames_of_penstock_below_the_action_are_left_out() -> None:
    def action() -> None:
        seconds("soon")

    trace = traceback_text(_caught(action))
    assert set(_files(trace)) == {__file__}
    assert 'seconds("soon")' in trace


def test_causes_keep_their_own_lines() -> None:
    def action() -> None:
        try:
            _lookup()
        except KeyError as error:
            raise ValueError("outer") from error

    trace = traceback_text(_caught(action))
    assert (
        trace.index('raise KeyError("glue")') < trace.index("direct cause") < trace.index("ValueError: outer")
    )


def test_suppressed_context_is_left_out() -> None:
    def action() -> None:
        try:
            _lookup()
        except KeyError:
            raise ValueError("outer") from None

    assert "glue" not in traceback_text(_caught(action))


def test_members_of_a_group_are_trimmed_too() -> None:
    async def member() -> None:
        await asyncio.to_thread(seconds, "soon")

    async def action() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(member())

    trace = traceback_text(_caught(lambda: asyncio.run(action())))
    assert "await asyncio.to_thread" in trace
    assert "penstock/language" not in trace


def test_fault_of_penstock_keeps_its_frames() -> None:
    error = _caught(partial(seconds, "soon"))
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    assert "durations.py" in traceback_text(error)


def test_failed_step_shows_the_lines_of_its_function() -> None:
    def action() -> None:
        raise StepFailed("step glue failed", name="glue", traceback=STEP_TRACEBACK)

    trace = TaskError.of(_caught(action)).traceback
    assert trace.startswith(STEP_TRACEBACK)
    assert trace.index("direct cause") < trace.index("StepFailed: step glue failed")


async def test_logged_error_shows_only_lines_of_the_action() -> None:
    async def action() -> None:
        try:
            seconds("soon")
        except ValueError:
            logging.getLogger("shop").exception("it happened")

    run, lines = run_of(action)
    with installed():
        await call(run)
    assert any("test_tracebacks.py" in line for _, line in lines)
    assert not any("durations.py" in line for _, line in lines)


@pytest.mark.parametrize("word", ["cause", "context"])
def test_circular_chain_ends(word: str) -> None:
    error = KeyError("glue")
    other = ValueError("outer")
    setattr(error, f"__{word}__", other)
    setattr(other, f"__{word}__", error)
    assert traceback_text(error).count("KeyError: 'glue'") == 1
