"""Actions and workflows run in the process of a test, on a clock that it moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.errors import Conflict, ExecutionFailed, InvalidInput, NotAllowed, NotFound
from penstock.run.steering import NonRetryable, Retry
from penstock.testing import Simulation
from tests.penstock.testing import shop


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(shop)


def test_an_action_runs_as_it_is_and_sees_its_run(simulation: Simulation) -> None:
    run = simulation.run("shop.charge", {"order": 7})
    assert run.result == {"order": 7, "attempt": 1, "token": str(run.id)}
    [step] = run.steps
    assert (step.path, step.input, step.log) == ("charge", {"order": 7}, ["charging 7"])


def test_a_retry_waits_as_its_policy_says(simulation: Simulation) -> None:
    began = simulation.now
    simulation.fake(shop.charge, raises=OSError("down"))
    run = simulation.run(shop.charge, order=7)
    assert [step.began_at - began for step in run.steps] == [
        timedelta(seconds=seconds) for seconds in (0, 10, 30)
    ]
    assert run.status == "failed"
    with pytest.raises(ExecutionFailed, match="OSError: down"):
        _ = run.result


def test_the_retry_policy_of_an_action_counts(simulation: Simulation) -> None:
    simulation.fake(shop.charge, raises=Retry(after=3600), times=1)
    simulation.fake(shop.charge, raises=NonRetryable("no"), times=1)
    run = simulation.run(shop.charge, order=7)
    assert [step.status for step in run.steps] == ["failed", "failed"]
    assert run.steps[1].began_at - run.steps[0].began_at == timedelta(hours=1)


def test_an_attempt_that_takes_too_long_times_out_and_one_that_does_not_completes(
    simulation: Simulation,
) -> None:
    simulation.fake(shop.charge, takes="2m", times=1)
    simulation.fake(shop.charge, returns="late", takes="30s")
    run = simulation.run(shop.charge, order=7)
    assert [(step.status, step.result) for step in run.steps] == [("timeout", None), ("completed", "late")]
    assert simulation.now - run.steps[0].began_at == timedelta(minutes=1, seconds=10 + 30)


def test_a_lost_worker_uses_up_an_attempt_and_no_retry(simulation: Simulation) -> None:
    simulation.lose_worker(shop.charge, times=2)
    run = simulation.run(shop.charge, order=7)
    assert [step.status for step in run.steps] == ["lost", "lost", "completed"]
    assert run.result["attempt"] == 3


def test_repeatedly_lost_work_is_abandoned_or_fails(
    simulation: Simulation,
) -> None:
    simulation.lose_worker(shop.charge, times=9).lose_worker("shop.ship", when="before")
    assert simulation.run(shop.charge, order=7).status == "abandoned"
    shipped = simulation.run("shop.ship", order=7)
    assert (shipped.status, shipped.error and shipped.error["type"]) == ("failed", "WorkerLost")


def test_a_deferral_carries_its_state_and_the_whole_has_a_time(simulation: Simulation) -> None:
    run = simulation.run(shop.poll, order=3)
    assert run.result == 3
    assert [step.status for step in run.steps] == ["deferred"] * 3 + ["completed"]
    late = simulation.run(shop.poll, order=30)
    assert late.status == "timeout"


def test_a_callback_is_told_and_is_a_run_of_its_own(simulation: Simulation) -> None:
    simulation.fake(shop.poll, raises=ValueError("no"))
    simulation.run(shop.poll, order=1)
    assert [(run.ref, run.status) for run in simulation.runs] == [
        ("shop.poll", "failed"),
        ("shop.tell", "completed"),
    ]
    assert simulation.runs[1].result == "failed: ValueError"


def test_inquiries_take_answers_of_the_assignee_or_the_default(simulation: Simulation) -> None:
    run = simulation.start(shop.approve, order=7)
    with pytest.raises(Conflict, match="`approve` waits"):
        _ = run.result
    with pytest.raises(NotAllowed, match="only ops"):
        run.answer("approve", True, by="me")
    with pytest.raises(InvalidInput, match="response"):
        run.answer("approve", "perhaps")
    with pytest.raises(NotFound, match="asks nothing"):
        run.answer("charge", True)
    run.answer("approve", True, by="ops")
    assert run.result is True
    assert simulation.run(shop.approve, order=7).result is False
    assert simulation.answer("shop.approve", True).run(shop.approve, order=7).result is True


def test_an_action_that_asks_goes_on_with_the_answers(simulation: Simulation) -> None:
    run = simulation.start(shop.interview)
    run.answer("interview", "Ada")
    run.answer("interview", "Lovelace")
    assert run.result == "Ada Lovelace"


def test_the_tasks_of_a_workflow_in_a_workflow_have_paths(simulation: Simulation) -> None:
    run = simulation.run(shop.sell, orders=[7, 8])
    assert run.result == ["shipped 7", "shipped 8"]
    assert run.ran == ["asked", *["delivered.pay", "delivered.ship"] * 2, "on_exit"]
    assert [step.input["order"] for step in run.attempts("delivered.pay")] == [7, 8]


def test_a_fake_of_a_task_leaves_the_others_alone(simulation: Simulation) -> None:
    simulation.fake("delivered.pay", returns="nothing")
    run = simulation.run(shop.sell, orders=[7])
    assert (run.steps[1].result, run.steps[2].result) == ("nothing", "shipped 7")


def test_a_cancelled_workflow_ends_its_tasks_and_runs_the_exit(simulation: Simulation) -> None:
    simulation.fake(shop.charge, returns=1, takes="10s")
    run = simulation.start(shop.sell, orders=[7, 8])
    run.answer("asked", True)
    run.cancel()
    assert run.status == "cancelled"
    assert [(step.path, step.status) for step in run.steps] == [
        ("asked", "completed"),
        ("delivered.pay", "cancelled"),
        ("on_exit", "completed"),
    ]


def test_a_workflow_has_a_time_and_takes_commands(simulation: Simulation) -> None:
    simulation.fake(shop.charge, takes="59s")
    run = simulation.start(shop.sell, orders=[7])
    run.command("pause")
    simulation.advance("2d")
    assert run.tasks["delivered"] == "due"
    run.command("skip", "delivered")
    run.command("resume")
    assert run.status == "completed"
    with pytest.raises(Conflict):
        run.command("skip", "delivered")
    late = simulation.start(shop.sell, orders=[7])
    late.command("pause")
    simulation.advance("3d")
    assert late.status == "timeout"


def test_an_event_starts_actions_of_its_rules_and_ends_waits(simulation: Simulation) -> None:
    simulation.fake(shop.shout, returns="PAID")
    run = simulation.start(shop.settle, order=7)
    [charged] = simulation.publish(shop.paid, {"order": 8})
    assert (charged.ref, run.waits_for) == ("shop.charge", ["seen"])
    simulation.publish("shop.paid", {"order": 7})
    assert run.result == {"seen": {"order": 7}, "shout": "PAID"}


def test_a_simulation_reports_unknown_definitions_at_once(simulation: Simulation) -> None:
    with pytest.raises(NotFound, match=r"no action or workflow 'shop\.chrage'") as unknown:
        simulation.run("shop.chrage", order=7)
    assert "shop.charge" in str(unknown.value.hint)
    with pytest.raises(NotFound, match="no Python function") as program:
        simulation.run(shop.shout, what="x")
    assert "simulation.fake('shop.shout'" in str(program.value.hint)
    with pytest.raises(InvalidInput, match="order"):
        simulation.run(shop.charge)
    with pytest.raises(InvalidInput, match="no task 'chrage'"):
        simulation.fake("chrage", returns=1).run(shop.charge, order=7)


def test_an_action_that_is_not_here_can_be_faked_by_its_ref(simulation: Simulation) -> None:
    simulation.fake("bank.transfer", returns="done")
    assert simulation.run("bank.transfer", {"anything": 1}).result == "done"


def test_a_workflow_that_fails_by_itself_runs_nothing(simulation: Simulation) -> None:
    run = simulation.run(shop.refuse)
    assert (run.status, run.ran) == ("failed", [])
    with pytest.raises(NotFound, match="did not run"):
        run.input("fail")


async def test_coroutines_run_where_a_loop_runs_already(simulation: Simulation) -> None:
    assert simulation.run(shop.charge, order=7).result["order"] == 7


def test_the_clock_is_a_clock(simulation: Simulation) -> None:
    before = simulation.now
    simulation.advance("1d")
    assert simulation.now - before == timedelta(days=1)
