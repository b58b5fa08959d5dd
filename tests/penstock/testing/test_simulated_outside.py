"""Work outside is completed, failed and reported by the id of `later`, on a clock that the test moves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.testing import Simulation
from tests.penstock.testing import invoices

BUILD = "ci:main"


@pytest.fixture
def simulation() -> Simulation:
    invoices.ADDRESSES.clear()
    return Simulation(invoices)


def _headline(error: dict[str, Any] | None) -> str:
    assert error is not None
    return f"{error['type']}: {error['message']}"


def test_result_by_its_id_completes_each_wait(simulation: Simulation) -> None:
    first, second = (simulation.start(invoices.build, ref="main") for _ in range(2))
    other = simulation.start(invoices.build, ref="next")
    assert simulation.complete(BUILD, result={"n": 7}) == [first, second]
    assert [first.result, second.result, other.status] == [{"n": 7}, {"n": 7}, "waiting"]


def test_result_of_a_task_is_that_of_its_workflow(simulation: Simulation) -> None:
    run = simulation.start(invoices.built_twice, ref="main")
    assert simulation.complete(BUILD, result=1) == [run]
    assert run.result == [1, 1]


def test_error_by_its_id_is_retried(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    assert simulation.fail(BUILD, "it broke") == [run]
    assert (run.status, _headline(run.steps[0].error)) == ("requested", "OutsideError: it broke")
    simulation.advance("10s")
    simulation.fail(BUILD, {"type": "Build", "message": "broke again"})
    assert (run.status, _headline(run.error)) == ("failed", "Build: broke again")


def test_error_that_is_not_retryable_fails_at_once(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    simulation.fail(BUILD, {"type": "Build", "message": "no", "retryable": False})
    assert run.status == "failed"


def test_first_early_outcome_is_kept_for_one_wait(simulation: Simulation) -> None:
    assert simulation.complete(BUILD, result="early") == []
    simulation.fail(BUILD, "too late")
    assert simulation.run(invoices.build, ref="main").result == "early"
    assert simulation.start(invoices.build, ref="main").status == "waiting"


def test_early_error_by_its_id_is_not_retried(simulation: Simulation) -> None:
    simulation.fail(BUILD, "it broke")
    run = simulation.run(invoices.build, ref="main")
    assert [step.status for step in run.steps] == ["failed"]


def test_early_outcome_is_dropped_after_a_day(simulation: Simulation) -> None:
    simulation.complete(BUILD, result="old")
    simulation.advance("1d")
    simulation.complete(BUILD, result="new")
    assert simulation.start(invoices.build, ref="main").result == "new"
    simulation.complete(BUILD, result="lost")
    simulation.advance("1d")
    assert simulation.start(invoices.build, ref="main").status == "waiting"


def test_error_before_the_wait_by_its_callback_is_retried(simulation: Simulation) -> None:
    simulation.fake(invoices.build, takes="1m", times=1)
    run = simulation.start(invoices.build, ref="main")
    simulation.call_back(invoices.ADDRESSES[0], {"error": "it broke"})
    simulation.advance("2m")
    assert [step.status for step in run.steps] == ["failed", "waiting"]


def test_progress_and_heartbeat_begin_the_time_again(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    simulation.advance("50m")
    simulation.progress(BUILD, 0.5, "half")
    simulation.advance("50m")
    simulation.heartbeat(BUILD)
    simulation.advance("50m")
    assert run.status == "waiting"
    assert [(report.done, report.text) for report in run.steps[0].progress] == [(0.5, "half")]
    simulation.advance("10m")
    assert (run.status, _headline(run.error)) == ("timeout", "timeout: no heartbeat came for 3600 s")


def test_progress_before_the_wait_has_no_effect(simulation: Simulation) -> None:
    simulation.fake(invoices.build, takes="1m")
    run = simulation.start(invoices.build, ref="main")
    simulation.call_back(invoices.ADDRESSES[0], {"progress": 0.5})
    simulation.call_back(invoices.ADDRESSES[0], {"heartbeat": True})
    simulation.advance("2m")
    assert (run.status, run.steps[0].progress) == ("waiting", [])


def test_progress_needs_a_wait_with_a_callback(simulation: Simulation) -> None:
    simulation.start(invoices.build, ref="main")
    with pytest.raises(NotFound, match="no execution waits for 'ci:mian'") as unknown:
        simulation.progress("ci:mian", 0.5)
    assert "ci:main" in (unknown.value.hint or "")
    simulation.start(invoices.hands_over, id="gh:1")
    with pytest.raises(Conflict, match="passed on no callback"):
        simulation.heartbeat("gh:1")
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        simulation.progress(BUILD, 2)


def test_timeout_ends_the_wait_on_the_clock(simulation: Simulation) -> None:
    run = simulation.start(invoices.hands_over, id="gh:1", timeout="2d")
    simulation.advance("47h")
    assert run.status == "waiting"
    simulation.advance("1h")
    assert run.status == "timeout"
    simulation.complete("gh:1", result="late")
    assert run.status == "timeout"


def test_execution_is_completed_by_hand(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    assert simulation.complete(run.id, result=7) == [run]
    assert run.result == 7
    with pytest.raises(Conflict, match="no longer waits for this outcome: its status is completed"):
        simulation.complete(run.id, result=8)
    with pytest.raises(Conflict, match="does not wait for an outside system"):
        simulation.fail(simulation.run(invoices.receipt, invoice=1).id, "no")
    with pytest.raises(Conflict, match="does not wait for an outside system"):
        simulation.fail(simulation.start(invoices.built_twice, ref="main").id, "no")
    with pytest.raises(NotFound):
        simulation.complete(UUID(int=99), result=1)


@pytest.mark.parametrize("waits", [True, False])
def test_value_that_cannot_be_stored_is_refused(simulation: Simulation, waits: bool) -> None:
    run = simulation.start(invoices.build, ref="main" if waits else "other")
    with pytest.raises(InvalidInput, match="the result cannot be stored"):
        simulation.complete(BUILD, result="x" * 300_000)
    with pytest.raises(InvalidInput, match="neither a text nor an object"):
        simulation.fail(BUILD, {"text": "it broke"})
    assert run.status == "waiting"
    assert simulation.start(invoices.hands_over, id=BUILD).status == "waiting"
