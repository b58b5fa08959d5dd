"""A requested end beside other moves: its reason is shown, whatever moves the execution before it has ended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from tests.penstock.store.durable.functions import Functions

WORKER = UUID(int=7)
ASKED = "asked by ada"
TOLD: dict[str, Any] = {"ends_as": "cancelled", "reason": ASKED, "attempt": 1}
FUNCTIONS = Path("migrations/functions")
WITHOUT_REQUEST = {"complete_waits", "finish_completed", "finish_workflows", "tell_functions"}
"""The functions that set a reason and need not look: an execution that they move either has completed, is a workflow,
which keeps its request elsewhere, or gets its request there."""
FINISH = """select * from finish_attempts('00000000-0000-0000-0000-000000000007', array[$1::uuid], array[1], array[$2], array[$3],
    array[null], array[0.0], array[null::timestamptz], array['of the attempt'], '{}', '{}')"""
LOSE = "select * from recover_executions('00000000-0000-0000-0000-000000000007', array[$1::uuid], 'worker w was lost')"


async def row(stand: Functions, name: str) -> tuple[str, str | None]:
    [found] = await stand.sql("select status, reason from execution where id = $1", stand.ids[name])
    return found["status"], found["reason"]


async def error(stand: Functions, name: str) -> Any:
    [found] = await stand.sql("select error::text from result where execution_id = $1", stand.ids[name])
    return orjson.loads(found["error"])


async def test_function_that_suspends_as_it_is_cancelled_keeps_the_reason(stand: Functions) -> None:
    await stand.add("run", "running", claim=WORKER, **TOLD)
    awaits = orjson.dumps({"awaits": {"children": [], "until": None, "signals": [["go", 1]]}}).decode()
    await stand.sql(FINISH, stand.ids["run"], "waiting", awaits)
    assert await row(stand, "run") == ("scheduled", ASKED)
    assert await stand.asleep() == set()


async def test_function_that_lost_its_worker_keeps_the_reason(stand: Functions) -> None:
    await stand.add("run", "running", claim=WORKER, **TOLD)
    await stand.sql(LOSE, stand.ids["run"])
    assert await row(stand, "run") == ("scheduled", ASKED)


async def test_action_that_lost_its_worker_has_the_end_and_error_of_the_request(stand: Functions) -> None:
    stand.definition = stand.plain
    await stand.add("run", "canceling", claim=WORKER, **TOLD)
    await stand.sql(LOSE, stand.ids["run"])
    assert await row(stand, "run") == ("cancelled", ASKED)
    assert await error(stand, "run") == {"type": "cancelled", "message": ASKED}
    [attempt] = await stand.sql("select outcome, error ->> 'type' as type from attempt")
    assert (attempt["outcome"], attempt["type"]) == ("lost", "WorkerLost")


@pytest.mark.parametrize("recovery", [{"on_worker_loss": "fail"}, {"max_recoveries": 0}])
async def test_function_that_cannot_clean_up_again_ends_as_requested(
    stand: Functions, recovery: dict[str, Any]
) -> None:
    await stand.add("run", "running", claim=WORKER, options={"recovery": recovery}, **TOLD)
    await stand.add("unasked", "running", claim=WORKER, options={"recovery": recovery}, attempt=1)
    for name in ("run", "unasked"):
        await stand.sql(LOSE, stand.ids[name])
    assert await row(stand, "run") == ("cancelled", ASKED)
    assert await error(stand, "run") == {"type": "WorkerLost", "message": "worker w was lost"}
    status, reason = await row(stand, "unasked")
    assert status in ("failed", "abandoned")
    assert reason == "worker w was lost"


@pytest.mark.parametrize(
    ("status", "moves", "after"),
    [
        ("requested", "hold_requested(array[$1::uuid])", "requested"),
        ("scheduled", "hold_waiting('00000000-0000-0000-0000-000000000000', 10)", "requested"),
        ("scheduled", "reschedule_execution($1, now() + interval '1 hour', 'me', 'later')", "requested"),
        ("queued", "mend_lines(array[$1::uuid])", "scheduled"),
        ("queued", "set_priority($1, 5::smallint)", "scheduled"),
        ("waiting", "mend_silent(array[$1::uuid])", "scheduled"),
    ],
)
async def test_function_that_another_command_moves_keeps_the_reason(
    stand: Functions, status: str, moves: str, after: str
) -> None:
    await stand.add("run", status, **TOLD)
    await stand.add("unasked", status, attempt=1)
    if "hold_" in moves:
        await stand.sql("update namespace set hold = 'held'")
    for name in ("run", "unasked"):
        await stand.sql("select * from " + moves.replace("$1", f"'{stand.ids[name]}'"))
    assert await row(stand, "run") == (after, ASKED)
    status, reason = await row(stand, "unasked")
    assert (status, reason in (None, ASKED)) == (after, False)
    if "hold_" in moves:
        await stand.sql("update namespace set hold = null")
        await stand.sql("select let_go($1, true)", list(stand.ids.values()))
        assert await row(stand, "run") == ("scheduled", ASKED)
        assert await row(stand, "unasked") == ("scheduled", None)


async def test_function_keeps_the_reason_while_its_workflow_is_paused(stand: Functions) -> None:
    await stand.add("flow", "running", kind="workflow")
    await stand.add("run", "scheduled", parent="flow", **TOLD)
    await stand.sql("select hold_children(array[$1::uuid], 'for a look')", stand.ids["flow"])
    assert await row(stand, "run") == ("requested", ASKED)
    await stand.sql("select release_children(array[$1::uuid], 'looked')", stand.ids["flow"])
    assert await row(stand, "run") == ("scheduled", ASKED)


@pytest.mark.parametrize(
    "ends",
    [
        "end_executions(array[$1::uuid], '{scheduled}', 'failed', 'dead letter: delivery_limit', '{\"type\": \"DeadLetter\"}')",
        "end_executions(array[$1::uuid], '{scheduled}', 'timeout', 'no worker started it in time', null)",
        "stop_executions(array[$1::uuid], 'timeout', 'its time to complete ran out')",
    ],
)
async def test_function_that_cannot_go_on_ends_as_requested(stand: Functions, ends: str) -> None:
    await stand.add("run", "scheduled", **TOLD)
    await stand.sql(f"select * from {ends}", stand.ids["run"])
    assert await row(stand, "run") == (("scheduled" if "stop" in ends else "cancelled"), ASKED)
    if "stop" not in ends:
        assert await error(stand, "run") == {"type": "cancelled", "message": ASKED}


@pytest.mark.parametrize("status", ["requested", "queued", "scheduled"])
async def test_second_request_by_hand_replaces_the_first(stand: Functions, status: str) -> None:
    await stand.add("run", status, ends_as="timeout", reason="its time to complete ran out", attempt=1)
    await stand.sql("select * from cancel_nested(array[$1::uuid], 'at once')", stand.ids["run"])
    assert await row(stand, "run") == ("cancelled", "at once")
    assert await error(stand, "run") == {"type": "cancelled", "message": "at once"}


def test_each_function_that_sets_a_reason_looks_for_a_requested_end() -> None:
    """A new move of executions would replace the reason of a request."""
    sets = re.compile(r"update execution (?:e )?set\b(?:(?!;).)*?\breason = (?!excluded)", re.DOTALL)
    careless = {
        path.stem
        for path in FUNCTIONS.rglob("*.sql")
        if sets.search(text := path.read_text()) and "ends_as" not in text
    }
    assert careless <= WITHOUT_REQUEST
