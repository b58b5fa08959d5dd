"""Pausing, resuming and stopping runs: obeyed by what is ready, in line, or about to be retried, and by workflows inside."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from penstock import DurableContext, Limit, RetryPolicy, action, current
from penstock.errors import ExecutionFailed
from penstock.language.workflows import Workflow, from_yaml
from penstock.operate import titles
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.upkeep import overview
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport
gate = asyncio.Event()
"""What tasks in the midst wait for: set when a test has paused what is around them."""


@pytest.fixture(autouse=True)
def closed_gate() -> None:
    """Begin each test with a gate of its own event loop that nothing has passed."""
    global gate
    gate = asyncio.Event()


@action(pack="ps")
async def hold() -> str:
    await gate.wait()
    return "held"


@action(pack="ps")
async def nap(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@action(pack="ps", retry=RetryPolicy(max_attempts=2, initial_delay=60, jitter=0))
async def second_time() -> int:
    if current().attempt == 1:
        raise OSError("not yet")
    return current().attempt


@action(pack="ps", limits=Limit(1))
async def narrow(place: int) -> int:
    await gate.wait()
    return place


READY = from_yaml("""
workflow: ps.ready
tasks:
  all: {action: ps.nap, with_items: [1, 2, 3], input: {seconds: 0}}
output: "{{ tasks.all.result | length }}"
""")
RETRYING = from_yaml(
    "workflow: ps.retrying\ntasks: {again: {action: ps.second_time}}\noutput: '{{ tasks.again.result }}'"
)
LINE = from_yaml("""
workflow: ps.line
tasks: {all: {action: ps.narrow, with_items: [7, 8, 9], input: {place: "{{ item }}"}}}
output: "{{ tasks.all.result }}"
""")
OUTER = from_yaml("""
workflow: ps.outer
tasks: {inner: {workflow: ps.inner}}
output: "{{ tasks.inner.result }}"
""")
INNER = from_yaml("""
workflow: ps.inner
tasks:
  one: {action: ps.hold}
  two: {action: ps.nap, needs: [one]}
output: "{{ tasks.two.result }}"
""")
EXIT = from_yaml("""
workflow: ps.exit
timeout: 60
tasks: {one: {action: ps.nap, input: {seconds: 60}}}
on_exit: {action: ps.nap, input: {seconds: 60}}
""")
BRIEF = from_yaml("""
workflow: ps.brief
timeout: 600
tasks: {one: {action: ps.nap, input: {seconds: 60}}}
on_exit: {action: ps.nap}
""")
CLEANED = from_yaml("""
workflow: ps.cleaned
timeout: 600
parameters: {seconds: {type: integer}}
limits: [{max: 1, when_full: cancel_running}]
tasks: {one: {action: ps.nap, input: {seconds: "{{ parameters.seconds }}"}}}
on_exit: {action: ps.hold}
""")
AROUND = from_yaml("""
workflow: ps.around
tasks: {inner: {workflow: ps.cleaned, input: {seconds: 0}}}
""")

ALL = (nap, hold, second_time, narrow, READY, RETRYING, LINE, OUTER, INNER, EXIT, BRIEF, CLEANED, AROUND)
DUE = "update timer set due_at = clock_timestamp() where kind = $1 returning 1"
OBEYED = "select 1 where not exists (select from workflow_command where obeyed_at is null)"


async def tell(house: Installation, id: UUID, kind: str) -> None:
    await house.client.command(id, kind, by="ada")
    await house.until(OBEYED)


async def settle(house: Installation) -> None:
    """Until everything that was due has been handled."""
    await house.until("select 1 where not exists (select from outbox where due_at < clock_timestamp())")


async def listed_wait(house: Installation, id: UUID) -> tuple[str, str, UUID] | None:
    """Return what lists say about the wait of an execution: the kind, the words, and the execution that waits."""
    rows = await titles.listed(house.session, ExecutionFilter(children=True))
    [wait] = [row.waits_for for row in rows if row.id == id]
    return None if wait is None else (wait.because, wait.text, wait.execution_id)


async def test_ready_work_without_a_worker_waits_until_resume(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor()
    id = await house.client.start("ps.ready")
    await house.until("select 1 from execution where status = 'scheduled' having count(*) = 3")
    await tell(house, id, "pause")
    assert await house.statuses() == {"running": 1, "requested": 3}
    assert await listed_wait(house, id) == ("paused", "is paused", id)
    [task, *_] = await house.rows("select id from execution where parent = $1", id)
    assert (await house.client.why(task["id"])).because == "paused"
    await house.worker(*ALL)
    await asyncio.sleep(1.5)  # longer than the age at which lost work is staged again
    assert await house.statuses() == {"running": 1, "requested": 3}
    await tell(house, id, "resume")
    assert await house.client.result(id, timeout=30) == 3
    await house.quiet()
    await house.sound()


async def test_a_run_that_has_not_begun_takes_commands(house: Installation) -> None:
    await house.apply(*ALL)
    id = await house.client.start("ps.ready")
    await house.rows("select * from schedule_executions(array[$1::uuid])", id)
    assert await house.statuses() == {"running": 1}  # and its first message is not handled yet
    await house.client.command(id, "pause", by="ada")
    await house.executor()
    await house.worker(*ALL)
    await house.until(OBEYED)
    await settle(house)
    assert await house.rows("select 1 from paused_workflow where execution_id = $1", id)
    assert not await house.rows("select 1 from execution where parent = $1 and attempt > 0", id)
    await tell(house, id, "resume")
    assert await house.client.result(id, timeout=30) == 3
    await house.quiet()
    await house.sound()


async def test_a_retry_that_becomes_due_while_paused_waits_until_resume(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.retrying")
    await house.until("select 1 from execution where status = 'requested' and attempt = 1")
    await tell(house, id, "pause")
    await house.rows(DUE, "ready")
    await house.until("select 1 where not exists (select from timer where kind = 'ready')")
    await settle(house)
    assert await house.statuses() == {"running": 1, "requested": 1}
    await tell(house, id, "resume")
    assert await house.client.result(id, timeout=30) == 2
    await house.sound()


async def test_a_retry_that_is_not_due_on_resume_keeps_its_time(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.retrying")
    await house.until("select 1 from execution where status = 'requested' and attempt = 1")
    await tell(house, id, "pause")
    await tell(house, id, "resume")
    [task] = await house.rows(
        "select status, not_before > clock_timestamp() as later from execution where task = 'again'"
    )
    assert tuple(task) == ("requested", True)


async def test_a_waiting_task_leaves_the_line_and_keeps_its_place(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.line")
    await house.until("select 1 from execution where status = 'queued' having count(*) = 2")
    await house.until("select 1 from execution where task = 'all' and status = 'running'")
    await tell(house, id, "pause")
    gate.set()
    await house.until("select 1 from execution where status = 'completed'")
    await settle(house)
    assert await house.statuses() == {"running": 1, "completed": 1, "requested": 2}
    assert not await house.rows("select 1 from slot union all select 1 from waiter")
    await tell(house, id, "resume")
    assert await house.client.result(id, timeout=30) == [7, 8, 9]
    order = await house.rows(
        "select e.item from admission a join execution e on e.id = a.execution_id order by a.seq"
    )
    assert [row["item"] for row in order] == [0, 1, 2]
    await house.quiet()
    await house.sound()


async def test_a_workflow_inside_a_paused_one_is_paused_and_resumed_with_it(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.outer")
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    await tell(house, id, "pause")
    await house.until("select 1 from paused_workflow having count(*) = 2")
    gate.set()
    await house.until("select 1 from execution where task = 'one' and status = 'completed'")
    await settle(house)
    assert not await house.rows("select 1 from execution where task = 'two'")
    [inner] = await house.rows("select id from execution where parent = $1", id)
    assert await listed_wait(house, id) == ("paused", "is paused", inner["id"])
    assert await listed_wait(house, inner["id"]) == ("paused", "is paused", inner["id"])
    assert (
        "These tasks start when the workflow is resumed: two."
        in (await house.client.why(inner["id"])).all_details
    )
    assert f"Resume it with: penstock resume {id}" in (await house.client.why(inner["id"])).all_details
    assert (
        "is paused with the workflow around it by ada" in (await house.client.why(inner["id"])).says.lower()
    )
    await tell(house, id, "resume")
    assert await house.client.result(id, timeout=30) == "rested"
    commands = await house.rows("select kind, by from workflow_command order by id")
    assert [tuple(row) for row in commands] == [
        ("pause", "ada"),
        ("pause", "the workflow around it"),
        ("resume", "ada"),
        ("resume", "the workflow around it"),
    ]
    assert not await house.rows("select 1 from paused_workflow")
    await house.sound()


async def test_list_names_the_pause_while_a_task_still_runs(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.outer")
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    [inner] = await house.rows("select id from execution where parent = $1", id)
    await tell(house, id, "pause")
    await house.until("select 1 from paused_workflow having count(*) = 2")
    still = "is paused, but its running tasks continue"
    assert await listed_wait(house, id) == ("paused", still, id)
    assert await listed_wait(house, inner["id"]) == ("paused", still, inner["id"])
    rows = await titles.listed(house.session, ExecutionFilter(children=True))
    assert {row.id for row in rows if row.paused} == {id, inner["id"]}
    await tell(house, id, "resume")
    gate.set()
    assert await house.client.result(id, timeout=30) == "rested"
    rows = await titles.listed(house.session, ExecutionFilter(children=True))
    assert not any(row.paused for row in rows)


async def test_list_names_the_pause_that_keeps_a_task(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.retrying")
    await house.until("select 1 from execution where task = 'again' and status = 'requested' and attempt = 1")
    await tell(house, id, "pause")
    await house.rows(DUE, "ready")
    await house.until("select 1 where not exists (select from timer where kind = 'ready')")
    await settle(house)
    causes = {counted.cause: counted.count for counted in await overview.standing(house.session)}
    assert causes == {"paused": 2}
    [task] = await house.rows("select id from execution where parent = $1", id)
    assert await listed_wait(house, task["id"]) == (
        "paused",
        "waits for its workflow, which is paused",
        task["id"],
    )


async def test_list_names_pause_inside_a_workflow_and_no_pause_while_a_task_runs(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.outer")
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    [inner] = await house.rows("select id from execution where parent = $1", id)
    await tell(house, inner["id"], "pause")
    assert await listed_wait(house, id) is None
    gate.set()
    await house.until("select 1 from execution where task = 'one' and status = 'completed'")
    await settle(house)
    assert await listed_wait(house, id) == (
        "paused",
        "waits for a workflow inside it, which is paused",
        inner["id"],
    )
    await tell(house, inner["id"], "resume")
    assert await house.client.result(id, timeout=30) == "rested"


async def test_a_paused_workflow_can_be_cancelled_with_all_that_is_held(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor()
    id = await house.client.start("ps.ready")
    await house.until("select 1 from execution where status = 'scheduled' having count(*) = 3")
    await tell(house, id, "pause")
    await house.client.cancel(id)
    await house.until("select 1 from execution where status = 'cancelled' having count(*) = 4")
    assert not await house.rows("select 1 from paused_workflow")
    await house.sound()


async def test_cancelling_runs_the_exit_task_and_cancelling_again_cancels_that(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.exit")
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    await house.client.cancel(id, reason="enough")
    await house.until("select 1 from execution where task = 'on_exit' and status = 'running'")
    assert (await house.client.get(id)).status == "running"
    await house.client.cancel(id, reason="enough, really")
    with pytest.raises(ExecutionFailed, match="enough") as failure:
        await house.client.result(id, timeout=30)
    assert failure.value.status == "cancelled"
    await house.quiet()
    assert await house.statuses() == {"cancelled": 3}
    await house.sound()


async def test_a_workflow_over_its_time_cancels_tasks_and_runs_exit(
    house: Installation,
) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.brief")
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    await house.rows(DUE, "total")
    with pytest.raises(ExecutionFailed) as failure:
        await house.client.result(id, timeout=30)
    assert failure.value.status == "timeout"
    await house.quiet()
    tasks = await house.rows("select task, status from execution where parent = $1", id)
    assert dict(map(tuple, tasks)) == {"one": "cancelled", "on_exit": "completed"}
    await house.sound()


EXITING = "select 1 from execution where task = 'on_exit' and status = 'running'"
YIELD = "insert into timer (due_at, kind, execution_id) values (clock_timestamp(), 'yield', $1)"
REPLACE = (
    "select stopping from cancel_executions(array[$1::uuid], 'replaced by a newer fire of its schedule')"
)
NO_TIMER = "select 1 where not exists (select from timer where due_at < clock_timestamp())"


async def task_statuses(house: Installation, id: UUID) -> dict[str, str]:
    return dict(map(tuple, await house.rows("select task, status from execution where parent = $1", id)))


@pytest.mark.parametrize("seconds", [60, 0])
@pytest.mark.parametrize("cause", ["timeout", "limit", "schedule"])
async def test_exit_task_is_cut_by_no_request_but_one_by_hand(
    house: Installation, cause: str, seconds: int
) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.cleaned", {"seconds": seconds})
    if seconds:
        await house.until("select 1 from execution where task = 'one' and status = 'running'")
        await house.client.cancel(id, reason="enough")
    await house.until(EXITING)
    if cause == "timeout":
        assert await house.rows(DUE, "total")
    elif cause == "limit":
        await house.rows(YIELD, id)
    else:
        assert await house.rows(REPLACE, id)
    await house.until(NO_TIMER)
    await settle(house)
    gate.set()
    if seconds:
        with pytest.raises(ExecutionFailed, match="enough") as failure:
            await house.client.result(id, timeout=30)
        assert failure.value.status == "cancelled"
    else:
        await house.client.result(id, timeout=30)
    assert (await task_statuses(house, id))["on_exit"] == "completed"
    await house.quiet()
    await house.sound()


async def test_workflow_that_gives_way_runs_its_exit_task_to_the_end(house: Installation) -> None:
    await house.start(*ALL)
    first = await house.client.start("ps.cleaned", {"seconds": 60})
    await house.until("select 1 from execution where task = 'one' and status = 'running'")
    second = await house.client.start("ps.cleaned", {"seconds": 60})
    await house.until(EXITING)
    third = await house.client.start("ps.cleaned", {"seconds": 0})
    await house.until("select 1 from execution where id = $1 and status = 'cancelled'", second)
    await settle(house)
    await asyncio.sleep(0.5)  # a second stop would reach the exit task meanwhile
    gate.set()
    await house.client.result(third, timeout=30)
    assert await task_statuses(house, first) == {"one": "cancelled", "on_exit": "completed"}
    await house.quiet()
    await house.sound()


async def test_cancelled_parent_lets_the_exit_task_of_a_child_end(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.around")
    await house.until(EXITING)
    await house.client.cancel(id, reason="enough")
    await house.until(
        "select 1 from workflow where execution_id = $1 and (head ->> 'stops')::integer = 1", id
    )
    await settle(house)
    gate.set()
    with pytest.raises(ExecutionFailed, match="enough"):
        await house.client.result(id, timeout=30)
    [inner] = await house.rows("select id, status from execution where parent = $1", id)
    assert inner["status"] == "completed"
    assert await task_statuses(house, inner["id"]) == {"one": "completed", "on_exit": "completed"}
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("cancels", [1, 2])
async def test_completed_workflow_is_cancelled_in_its_exit_task_by_the_second_request(
    house: Installation, cancels: int
) -> None:
    await house.start(*ALL)
    id = await house.client.start("ps.cleaned", {"seconds": 0})
    await house.until(EXITING)
    for n in range(cancels):
        assert await house.client.cancel(id, reason=f"request {n}") == 1
        await house.until(
            "select 1 from workflow where execution_id = $1 and (head ->> 'stops')::integer > $2", id, n
        )
    if cancels == 1:
        gate.set()
        await house.client.result(id, timeout=30)
    else:
        with pytest.raises(ExecutionFailed, match="request 0") as failure:
            await house.client.result(id, timeout=30)
        assert failure.value.status == "cancelled"
    status = "completed" if cancels == 1 else "cancelled"
    assert await task_statuses(house, id) == {"one": "completed", "on_exit": status}
    await house.quiet()
    await house.sound()


@action(pack="ps")
async def never_clean(ctx: DurableContext) -> None:
    try:
        await ctx.sleep("1d")
    finally:
        await ctx.step("cleans", note_cleanup)


async def note_cleanup() -> None:
    CLEANING.append(True)
    await asyncio.Event().wait()


CLEANING: list[bool] = []
STUBBORN = from_yaml("""
workflow: ps.stubborn
tasks: {one: {action: ps.never_clean}}
""")
STUBBORN_EXIT = from_yaml("""
workflow: ps.stubborn_exit
tasks: {one: {action: ps.nap}}
on_exit: {action: ps.never_clean}
""")
AROUND_STUBBORN = from_yaml("""
workflow: ps.around_stubborn
tasks: {inner: {workflow: ps.stubborn}}
""")


@pytest.mark.parametrize(("workflow", "requests"), [(STUBBORN, 1), (AROUND_STUBBORN, 1), (STUBBORN_EXIT, 2)])
async def test_request_by_hand_ends_cleanups_at_every_depth(
    house: Installation, workflow: Workflow, requests: int
) -> None:
    """`requests`: the number of requests after which the function cleans up. The next one ends it."""
    CLEANING.clear()
    await house.start(
        *ALL, never_clean, STUBBORN, STUBBORN_EXIT, AROUND_STUBBORN, suspend_after=1.0, grace=300
    )
    id = await house.client.start(workflow.ref)
    await house.until("select 1 from step where kind = 'sleep'")
    for n in range(requests):
        await house.client.cancel(id, reason=f"request {n}")
        await house.until(
            "select 1 from workflow where execution_id = $1 and (head ->> 'stops')::integer > $2", id, n
        )
        await settle(house)
    while not CLEANING:
        await asyncio.sleep(0.01)
    await house.client.cancel(id, reason="at once")
    with pytest.raises(ExecutionFailed) as failure:
        await house.client.result(id, timeout=20)
    assert failure.value.status == "cancelled"
    await house.quiet()
    await house.sound()
