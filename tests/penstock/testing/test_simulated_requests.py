"""Code of actions publishes, starts, runs and is called back in a simulation, as on a worker."""

from __future__ import annotations

import re

import pytest

from penstock.errors import Conflict, ExecutionFailed, NotFound
from penstock.testing import Simulation
from tests.penstock.testing import invoices


@pytest.fixture
def simulation() -> Simulation:
    invoices.ADDRESSES.clear()
    invoices.CALLS.clear()
    return Simulation(invoices)


def test_published_event_and_start_play_on(simulation: Simulation) -> None:
    run = simulation.run(invoices.collect, invoice=7)
    assert run.result == "collected"
    [event] = run.published
    assert (event.trigger, event.payload, event.key) == ("invoices.paid", {"invoice": 7}, None)
    [receipt] = run.started
    assert (receipt.ref, receipt.result) == ("invoices.receipt", "receipt of 7")
    assert [started.ref for started in simulation.runs] == [
        "invoices.collect",
        "invoices.book",
        "invoices.receipt",
    ]
    assert simulation.runs[1].result == "booked 7"
    assert simulation.runs[2] == receipt


def test_key_starts_once_and_refuses_other_parameters(simulation: Simulation) -> None:
    simulation.run(invoices.collect, invoice=7)
    again = simulation.run(invoices.collect, invoice=7)
    assert len([run for run in simulation.runs if run.ref == "invoices.receipt"]) == 1
    assert again.started == [simulation.runs[2]]


def test_transactional_publish_comes_with_the_completion(simulation: Simulation) -> None:
    failed = simulation.run(invoices.collect, invoice=7, transactional=True, fails=True)
    assert failed.status == "failed"
    assert failed.published == []
    assert [run.ref for run in failed.started] == ["invoices.receipt"]
    completed = simulation.run(invoices.collect, invoice=8, transactional=True)
    assert [event.payload for event in completed.published] == [{"invoice": 8}]
    assert [run.result for run in simulation.runs if run.ref == "invoices.book"] == ["booked 8"]


def test_transactional_publish_of_a_lost_worker_is_dropped(simulation: Simulation) -> None:
    simulation.lose_worker(invoices.collect)
    run = simulation.run(invoices.collect, invoice=7, transactional=True)
    assert [step.status for step in run.steps] == ["lost", "completed"]
    assert len(run.published) == 1


def test_unknown_trigger_and_wrong_payload_fail_the_attempt(simulation: Simulation) -> None:
    run = simulation.run(invoices.misspelt, trigger="invoices.payed", payload={})
    assert run.error
    assert run.error["type"] == "NotFound"
    run = simulation.run(invoices.misspelt, trigger="invoices.paid", payload={"invoice": "seven"})
    assert run.error
    assert run.error["type"] == "InvalidInput"


def test_plain_function_runs_with_the_blocking_twin(simulation: Simulation) -> None:
    run = simulation.run(invoices.collect_plain, invoice=7)
    assert run.result == "receipt of 7"
    assert len(run.published) == 1


def test_run_waits_on_the_clock_of_the_simulation(simulation: Simulation) -> None:
    simulation.fake("invoices.slow", returns="late", takes="2m")
    assert simulation.run(invoices.waits, invoice=1).result == "late"
    run = simulation.run(invoices.waits, invoice=1, timeout="1m")
    assert run.error
    assert run.error["type"] == "TimeoutError"
    [slow] = run.started
    assert run.error["message"].startswith(
        f"invoices.slow ({slow.id}) did not end within 60 s: it is running."
    )


def test_run_raises_the_failure_of_its_execution(simulation: Simulation) -> None:
    simulation.fake("invoices.slow", raises=OSError("down"))
    error = simulation.run(invoices.waits, invoice=1).error
    assert error
    assert error["type"] == "ExecutionFailed"
    assert re.fullmatch(r"invoices\.slow \([0-9a-f-]{36}\) failed: OSError: down", error["message"])


@pytest.mark.parametrize(("keep", "word"), [("last", "b"), ("first", "a")])
def test_debounced_starts_have_one_execution(simulation: Simulation, keep: str, word: str) -> None:
    run = simulation.start(invoices.burst, words=["a", "b"], keep=keep)
    first, second = run.result
    assert first == second
    [noted] = run.started
    assert noted.status == "requested"
    simulation.advance("5s")
    assert noted.result == word


def test_callback_completes_waiting_run(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    assert run.status == "waiting"
    [address] = invoices.ADDRESSES
    simulation.call_back(address, {"progress": 0.5, "text": "half"})
    assert [(report.done, report.text) for report in run.steps[0].progress] == [(0.5, "half")]
    simulation.call_back(address, {"result": 7})
    assert run.result == 7
    simulation.call_back(address, {"result": 7})
    with pytest.raises(Conflict):
        simulation.call_back(address, {"result": 8})
    with pytest.raises(NotFound):
        simulation.call_back("https://example.org/", {"result": 8})


def test_callback_with_an_error_is_retried(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    simulation.call_back(invoices.ADDRESSES[0], {"error": "it broke"})
    simulation.advance("10s")
    assert [step.status for step in run.steps] == ["failed", "waiting"]
    first, second = invoices.ADDRESSES
    with pytest.raises(Conflict):
        simulation.call_back(first, {"result": 1})
    simulation.call_back(second, {"error": {"type": "Build", "message": "broke again"}})
    with pytest.raises(ExecutionFailed, match="Build: broke again"):
        _ = run.result


def test_callback_before_the_action_waits_is_kept(simulation: Simulation) -> None:
    simulation.fake(invoices.build, takes="1m")
    run = simulation.start(invoices.build, ref="main")
    simulation.call_back(invoices.ADDRESSES[0], {"result": "early"})
    assert run.status == "running"
    assert run.finish().result == "early"


def test_silence_after_a_heartbeat_ends_the_wait(simulation: Simulation) -> None:
    run = simulation.start(invoices.build, ref="main")
    simulation.advance("50m")
    simulation.call_back(invoices.ADDRESSES[0], {"heartbeat": True})
    simulation.advance("50m")
    assert run.status == "waiting"
    simulation.advance("20m")
    assert run.status == "timeout"


def test_step_of_a_durable_function_publishes_and_starts(simulation: Simulation) -> None:
    run = simulation.run(invoices.settle, invoice=7)
    assert run.result == "receipt of 7"
    assert [event.payload for event in run.published] == [{"invoice": 7}]
    assert [started.status for started in run.started] == ["completed", "completed"]
    assert run.steps[0].log == ["sent 7"]
    assert invoices.CALLS == ["send"]


def test_signal_of_an_action_wakes_the_function(simulation: Simulation) -> None:
    waiting = simulation.start(invoices.awaits_payment)
    assert simulation.run(invoices.tell_paid, run=str(waiting.id)).result is True
    assert waiting.result == "card"
    error = simulation.run(invoices.tell_paid, run=str(waiting.id)).error
    assert error
    assert error["type"] == "Conflict"


def test_signal_reaches_the_function_with_the_key(simulation: Simulation) -> None:
    told = simulation.run(invoices.starts_and_tells, key="invoice-7")
    assert told.result is True
    assert [started.result for started in told.started] == ["card"]
    error = simulation.run(invoices.starts_and_tells, key="invoice-8").error
    assert error
    assert (error["type"], "key 'invoice-8'" in error["message"]) == ("NotFound", True)


def test_transactional_signal_comes_with_the_completion(simulation: Simulation) -> None:
    waiting = simulation.start(invoices.awaits_payment)
    message = {"run": str(waiting.id), "transactional": True}
    assert simulation.run(invoices.tell_paid, message, fails=True).status == "failed"
    assert waiting.status == "waiting"
    assert simulation.run(invoices.tell_paid, message).status == "completed"
    assert waiting.result == "card"


def test_signal_to_an_action_is_refused(simulation: Simulation) -> None:
    receipt = simulation.run(invoices.receipt, invoice=1)
    for transactional in (False, True):
        told = simulation.run(invoices.tell_paid, run=str(receipt.id), transactional=transactional)
        assert told.error
        assert told.error["type"] == "Conflict"


def test_body_of_a_durable_function_is_told_to_use_a_step(simulation: Simulation) -> None:
    error = simulation.run(invoices.starts_in_body).error
    assert error
    assert error["type"] == "OutsideRun"
    assert "ctx.step" in error["message"]


def test_transactional_request_in_a_step_is_refused(simulation: Simulation) -> None:
    error = simulation.run(invoices.settle_transactional).error
    assert error
    assert "cannot use transactional requests" in error["message"]


def test_result_names_the_failure_before_a_retry(simulation: Simulation) -> None:
    simulation.fake(invoices.build, raises=OSError("down"), times=1)
    run = simulation.start(invoices.build, ref="main")
    with pytest.raises(Conflict, match=r"attempt 1 of `build` failed \(OSError: down\)"):
        _ = run.result
