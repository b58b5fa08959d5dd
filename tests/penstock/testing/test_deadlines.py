"""A deadline in a simulation is reached at its instant, and not a microsecond before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from penstock.testing import Simulation
from tests.penstock.testing import deadlines
from tests.penstock.testing.deadlines import CALLED, SECONDS, SHORT, SPAN, START

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Kind:
    """A kind of deadline: an action or workflow with it, and the status after it."""

    target: Any
    status: str = "completed"
    parameters: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Simulation], Any] = lambda simulation: None
    """Called before the start."""
    begin: Callable[[Simulation], Any] = lambda simulation: None
    """Called after the start."""
    span: timedelta = SPAN
    of_last: bool = False
    """The last run of the simulation has the deadline, and not the first one."""


def _signal(simulation: Simulation) -> None:
    simulation.runs[0].signal("go")


def _heartbeat(simulation: Simulation) -> None:
    simulation.advance(SPAN / 2)
    simulation.heartbeat("outside")


def _busy_server(header: str) -> Callable[[Simulation], Any]:
    def prepare(simulation: Simulation) -> None:
        simulation.respond("https://shop.example.org/", status=503, headers={"Retry-After": header}, times=1)
        simulation.respond("https://shop.example.org/", json=1)

    return prepare


DATE = START.replace(microsecond=0) + timedelta(seconds=3600)

KINDS = {
    "durable sleep": Kind(deadlines.sleeps),
    "three durable sleeps": Kind(deadlines.sleeps_thrice),
    "durable sleep after a signal": Kind(deadlines.sleeps_after_signal, begin=_signal),
    "deadline of a signal": Kind(deadlines.awaits_signal, "failed"),
    "block of ctx.timeout": Kind(deadlines.has_block, "failed"),
    "nested deadline": Kind(deadlines.cleans_up),
    "durable inquiry": Kind(deadlines.asks, "failed"),
    "durable inquiry with a default": Kind(deadlines.asks_with_default),
    "durable wait for an event": Kind(deadlines.awaits_event, "failed"),
    "sleep in ctx.first": Kind(deadlines.takes_first),
    "retry of a step": Kind(deadlines.retries_step),
    "retry of a step with jitter": Kind(deadlines.retries_step_with_jitter),
    "retry of a durable function": Kind(deadlines.retries_function),
    "retry of a durable child": Kind(deadlines.runs_child),
    "retry": Kind(deadlines.retries),
    "requested retry": Kind(deadlines.asks_for_retry),
    "deferral": Kind(deadlines.defers),
    "deferral to an instant": Kind(deadlines.defers_to_instant),
    "defer_until of an instant": Kind(deadlines.defers_until),
    "defer_until of a condition": Kind(deadlines.looks_again),
    "sleep of an action": Kind(deadlines.sleeps_durably),
    "inquiry of an action": Kind(deadlines.poses_inquiry, "timeout"),
    "inquiry that resumes": Kind(deadlines.awaits_answer, "timeout"),
    "timeouts.waiting": Kind(deadlines.poses_bounded_inquiry, "timeout"),
    "timeouts.total": Kind(deadlines.poses_inquiry_in_total_time, "timeout"),
    "work outside": Kind(deadlines.waits_outside, "timeout"),
    "heartbeat": Kind(deadlines.expects_heartbeat, "timeout"),
    "heartbeat after another": Kind(deadlines.expects_heartbeat, "timeout", begin=_heartbeat),
    "duration of a fake": Kind(
        deadlines.plain,
        prepare=lambda simulation: simulation.fake(deadlines.plain, takes=SHORT),
        span=SHORT,
    ),
    "timeout of an attempt": Kind(
        deadlines.limited,
        "timeout",
        prepare=lambda simulation: simulation.fake(deadlines.limited, takes=2 * SPAN),
    ),
    "delayed start": Kind(deadlines.starts_later, parameters={"at": False}, of_last=True),
    "start at an instant": Kind(deadlines.starts_later, parameters={"at": True}, of_last=True),
    "debounced start": Kind(deadlines.starts_burst, span=SHORT, of_last=True),
    "inquiry of a workflow": Kind(deadlines.with_inquiry, "failed"),
    "event of a workflow": Kind(deadlines.with_event, "failed"),
    "delay of a task": Kind(deadlines.with_delay),
    "timeout of a workflow": Kind(deadlines.with_limit, "timeout"),
    "total timeout of a task": Kind(deadlines.with_task_limit, "failed"),
    "duration of a response": Kind(
        deadlines.http,
        prepare=lambda simulation: simulation.respond("https://shop.example.org/", json=1, takes="20s"),
        span=timedelta(seconds=20),
    ),
    "Retry-After in seconds": Kind(
        deadlines.http, prepare=_busy_server("3600"), span=timedelta(seconds=3600)
    ),
    "Retry-After as a date": Kind(
        deadlines.http,
        prepare=_busy_server(format_datetime(DATE, usegmt=True)),
        span=timedelta(seconds=3600),
    ),
}


@pytest.fixture
def simulation() -> Simulation:
    CALLED.clear()
    return Simulation(deadlines, start=START)


def _started(simulation: Simulation, kind: Kind) -> Callable[[], str]:
    """Start what has the deadline. Return a function that returns its status."""
    kind.prepare(simulation)
    simulation.start(kind.target, kind.parameters)
    kind.begin(simulation)
    run = simulation.runs[-1 if kind.of_last else 0]
    return lambda: run.status


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_deadline_is_reached_at_its_instant(simulation: Simulation, kind: Kind) -> None:
    status = _started(simulation, kind)
    simulation.advance(kind.span)
    assert status() == kind.status


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_deadline_is_not_reached_a_microsecond_before(simulation: Simulation, kind: Kind) -> None:
    status = _started(simulation, kind)
    simulation.advance(kind.span - MICROSECOND)
    assert status() in ("requested", "running", "waiting")
    simulation.settle()
    assert status() in ("requested", "running", "waiting")
    simulation.advance(MICROSECOND)
    assert status() == kind.status


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_run_moves_clock_to_the_deadline_alone(simulation: Simulation, kind: Kind) -> None:
    status, began = _started(simulation, kind), simulation.now
    simulation.runs[-1 if kind.of_last else 0].finish()
    assert status() == kind.status
    assert simulation.now - began == kind.span


def test_clock_of_durable_function_is_that_of_the_simulation(simulation: Simulation) -> None:
    assert simulation.run(deadlines.cleans_up).result == SECONDS


def test_step_takes_no_time_on_the_clock(simulation: Simulation) -> None:
    assert simulation.run(deadlines.works_in_block).result == "there"
    assert simulation.now == START


def test_clean_up_of_cancelled_function_may_sleep(simulation: Simulation) -> None:
    run = simulation.start(deadlines.sleeps_in_clean_up)
    run.cancel()
    assert (run.status, CALLED) == ("cancelled", ["cleaned up"])
    assert simulation.now == START


def test_kept_outcome_is_dropped_at_its_instant(simulation: Simulation) -> None:
    for short, status in ((MICROSECOND, "completed"), (timedelta(0), "waiting")):
        simulation.complete("outside", result=1)
        simulation.advance(timedelta(days=1) - short)
        assert simulation.start(deadlines.waits_outside).status == status
