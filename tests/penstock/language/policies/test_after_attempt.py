"""The sequel of an attempt with an unknown end: in the worker that stops, and in the database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.language.policies.after_attempt import (
    DONE_WITH_NOTHING,
    NOT_BEGUN,
    Ending,
    ending_after,
    ending_of,
    ending_of_overdue,
    ending_of_unfinished,
)
from penstock.language.policies.policies import Recovery, RetryPolicy
from penstock.run.outcomes import Outcome, TaskError
from penstock.settings import Settings
from penstock.store.session.database import Database


@pytest.mark.parametrize("on_worker_loss", ["rerun", "fail"])
async def test_a_worker_that_stops_decides_as_the_database_does_for_one_that_is_lost(
    database: str, on_worker_loss: str
) -> None:
    recovery = Recovery.model_validate({"on_worker_loss": on_worker_loss})
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    [[status]] = await home.session().fetch(
        "select after_loss(null, 0, $1::text::jsonb)", recovery.model_dump_json()
    )
    await home.close()
    assert ending_of_unfinished(recovery).status == status


def test_an_attempt_without_an_outcome_keeps_its_place_in_line() -> None:
    assert NOT_BEGUN.delay is None
    assert ending_of_unfinished(Recovery()).delay is None


TWICE = RetryPolicy(max_attempts=2, initial_delay=8, max_delay=8, jitter=0)


def failed(**more: Any) -> Outcome:
    return Outcome("failed", error=TaskError("shop.Declined", "no money", "Traceback ...", **more))


def test_a_returned_value_is_kept_and_a_null_result_is_shared() -> None:
    assert ending_of(Outcome.returned({"order": 1}), TWICE, 0) == Ending("completed", '{"order":1}')
    assert ending_of(Outcome.returned(None), TWICE, 0) is DONE_WITH_NOTHING
    assert ending_of(Outcome("completed"), TWICE, 0) == Ending("completed", "null")


def test_stored_error_of_http_call_has_its_answer() -> None:
    body = '{"error":\n "gross is missing"}' + " " * 3000
    error = TaskError(
        "HttpStatus", "the answer is 422", retryable=False, answer={"status": 422, "body": body}
    )
    stored = json.loads(ending_of(Outcome.failed(error), TWICE, 0).error or "")
    assert stored["message"] == 'the answer is 422: {"error": "gross is missing"}'
    assert stored["answer"] == {"status": 422, "body": body[:2048]}


def test_a_deferral_keeps_its_carried_value_and_its_instant() -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    assert ending_of(Outcome("deferred", until=at, carry={"page": 7}), TWICE, 5) == Ending(
        "requested", result='{"page":7}', delay=0.0, until=at, reason="deferred"
    )
    assert ending_of(Outcome("deferred", delay=3.5, carry={}), TWICE, 5) == Ending(
        "requested", delay=3.5, reason="deferred"
    )


def test_an_inquiry_waits_for_an_answer() -> None:
    asked = {"prompt": "Ship it?"}
    ending = ending_of(Outcome("inquiry", inquiry=asked), TWICE, 5)
    assert ending == Ending("waiting", '{"prompt":"Ship it?"}', reason="waits for an answer")


@pytest.mark.parametrize(
    ("causes", "text"),
    [
        (["an answer (step 'ask')"], "an answer (step 'ask')"),
        (["the end of step 'a'", "the signal paid"], "the end of step 'a' or the signal paid"),
        (list("abcd"), "a or b or c or d"),
        (list("abcde"), "a or b or c or 2 others"),
    ],
)
def test_suspended_function_names_its_causes(causes: list[str], text: str) -> None:
    awaited = {"until": None, "signals": [], "children": [], "causes": causes}
    ending = ending_of(Outcome("suspended", awaited=awaited), TWICE, 5)
    assert (ending.status, ending.reason) == ("waiting", f"waits, without a worker, for {text}")
    assert json.loads(ending.result or "") == {"awaits": awaited}


def test_attempt_with_a_later_outcome_waits_for_a_callback() -> None:
    ending = ending_of(Outcome("later", outside={"name": "scan"}), TWICE, 5)
    assert (ending.status, ending.reason) == ("waiting", "waits for a callback")


def test_a_failure_is_tried_again_while_there_are_attempts_left() -> None:
    ending = ending_of(failed(), TWICE, 0)
    assert (ending.status, ending.delay, ending.reason) == ("requested", 8.0, "retry after shop.Declined")
    assert json.loads(ending.error or "") == {
        "type": "shop.Declined",
        "message": "no money",
        "traceback": "Traceback ...",
    }
    last = ending_of(failed(), TWICE, 1)
    assert last == Ending("failed", error=ending.error, reason="shop.Declined: no money")
    assert ending_of(Outcome.timed_out(3), TWICE, 1).status == "timeout"
    assert ending_of(Outcome.timed_out(3), TWICE, 0).status == "requested"


def test_the_delay_is_that_of_the_next_attempt_and_drawn_by_chance() -> None:
    growing = RetryPolicy(max_attempts=9, initial_delay=1, max_delay=1000, backoff="linear", jitter=0)
    assert [ending_of(failed(), growing, failures).delay for failures in (0, 1, 2)] == [1.0, 2.0, 3.0]
    spread = RetryPolicy(max_attempts=9, initial_delay=100, max_delay=100, jitter=1)
    drawn = {ending_of(failed(), spread, 0).delay or 0.0 for _ in range(20)}
    assert len(drawn) > 1
    assert all(0 <= delay <= 100 for delay in drawn)


@pytest.mark.parametrize(
    ("says", "policy", "status"),
    [
        (None, TWICE, "requested"),
        (None, RetryPolicy(max_attempts=2, never_on=("Declined",)), "failed"),
        (False, TWICE, "failed"),
        (True, RetryPolicy(max_attempts=2, never_on=("Declined",)), "requested"),
        (True, RetryPolicy(max_attempts=1), "failed"),
    ],
)
def test_the_action_knows_better_than_its_policy_whether_to_try_again_but_not_how_often(
    says: bool | None, policy: RetryPolicy, status: str
) -> None:
    assert ending_of(failed(retryable=says), policy, 0).status == status


def test_an_action_may_say_when_and_a_long_reason_is_cut() -> None:
    assert ending_of(failed(retry_after=0.0), TWICE, 0).delay == 0.0
    assert ending_of(failed(retry_after=99.0), TWICE, 0).delay == 99.0
    wordy = Outcome("failed", error=TaskError("E", "x" * 1000))
    assert ending_of(wordy, TWICE, 1).reason == "E: " + "x" * 196 + "…"


@pytest.mark.parametrize("why", [None, "it was cut off"])
def test_given_up_work_fails_only_if_it_must_not_run_twice(why: str | None) -> None:
    said = why or "its worker stopped before it had ended"
    assert ending_of_unfinished(Recovery(), why) == Ending(
        "requested", delay=None, reason=f"handed back: {said}"
    )
    ending = ending_of_unfinished(Recovery(on_worker_loss="fail"), why)
    assert (ending.status, ending.reason, ending.delay) == ("failed", said, 0.0)
    assert json.loads(ending.error or "") == {"type": "WorkerLost", "message": said}


@pytest.mark.parametrize(
    ("recovery", "failures", "status", "delay"),
    [
        (Recovery(), 0, "requested", 8.0),
        (Recovery(), 2, "requested", 8.0),
        (Recovery(), 3, "abandoned", 0.0),
        (Recovery(max_recoveries=0), 0, "abandoned", 0.0),
        (Recovery(on_worker_loss="fail"), 0, "failed", 0.0),
    ],
)
def test_a_loss_elsewhere_follows_the_recovery_not_the_retries(
    recovery: Recovery, failures: int, status: str, delay: float
) -> None:
    ending = ending_after(Outcome.lost("the node is gone"), recovery, TWICE, failures)
    assert (ending.status, ending.delay) == (status, delay)
    assert json.loads(ending.error or "")["type"] == "WorkerLost", "it counts as a failure"


def test_an_attempt_that_is_not_lost_ends_with_its_outcome() -> None:
    assert ending_after(failed(), Recovery(on_worker_loss="fail"), TWICE, 0) == ending_of(failed(), TWICE, 0)


def test_one_that_its_worker_has_not_ended_ends_as_the_worker_would_have_ended_it() -> None:
    late = Outcome.timed_out(3.0)
    assert ending_of_overdue(3.0, TWICE, 1) == ending_of(late, TWICE, 1)
    assert (ending_of_overdue(3.0, TWICE, 0).status, ending_of_overdue(3.0, TWICE, 1).status) == (
        "requested",
        "timeout",
    )
