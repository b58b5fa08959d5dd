"""Every option of a task and of a workflow, on real servers: what each does, seen from the outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import RetryPolicy, action
from penstock.errors import DefinitionError, ExecutionFailed
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.flows.written import ACTIONS, run

pytestmark = pytest.mark.either_transport


async def statuses(house: Installation) -> dict[str, str]:
    rows = await house.rows("select task, status from execution where parent is not null and item = -1")
    return {row["task"]: row["status"] for row in rows}


async def test_a_join_of_some_goes_on_without_waiting_for_the_rest(house: Installation) -> None:
    text = """
workflow: op.join
tasks:
  a: {action: op.echo}
  b: {action: op.echo}
  c: {action: op.nap, input: {seconds: 2}}
  two: {action: op.echo, needs: [a, b, c], join: 2, input: {value: "{{ tasks.c.status }}"}}
output: "{{ tasks.two.result }}"
"""
    assert await run(house, text) != "completed"


async def test_a_delay_puts_the_start_off_and_may_be_an_expression(house: Installation) -> None:
    text = """
workflow: op.delay
parameters: {delay: {}}
tasks: {late: {action: op.echo, delay: "{{ parameters.delay }}"}}
"""
    await run(house, text, {"delay": 0.4})
    [row] = await house.rows(
        "select h.at - w.created_at >= interval '0.4 s' as late from execution e "
        "join execution w on w.id = e.parent "  # the delay counts from when it was decided on, not from when that was written
        "join history h on h.execution_id = e.id and h.new = 'scheduled' where e.task = 'late'"
    )
    assert row["late"]


async def test_a_route_is_that_of_the_workers_that_take_it_and_may_be_an_expression(
    house: Installation,
) -> None:
    workflow = from_yaml("""
workflow: op.route
parameters: {where: {}}
tasks: {far: {action: op.echo, route: "{{ parameters.where }}", input: {value: 1}}}
output: "{{ tasks.far.result }}"
""")
    await house.start(*ACTIONS, workflow)
    id = await house.client.start("op.route", {"where": "special"})
    await house.until("select 1 from execution where task = 'far' and status = 'scheduled'")
    await house.worker(*ACTIONS, routes="special")
    assert await house.client.result(id, timeout=30) == 1
    [row] = await house.rows(
        "select n.queue from execution e join namespace n on n.id = e.namespace_id where task = 'far'"
    )
    assert row["queue"] == "work.special"


async def test_a_limit_of_a_task_holds_for_all_runs_of_it(house: Installation) -> None:
    text = """
workflow: op.limited
tasks:
  all: {action: op.nap, with_items: [0.02, 0.02, 0.02, 0.02], limits: {max: 1}, input: {seconds: "{{ item }}"}}
"""
    await run(house, text)
    rows = await house.rows("select max(held) as most, count(*) as n from admission")
    assert tuple(rows[0]) == (1, 4)


async def test_a_limit_of_the_exit_task_holds_too(house: Installation) -> None:
    text = """
workflow: op.exit_limited
tasks: {one: {action: op.echo}}
on_exit: {action: op.echo, limits: {max: 1}}
"""
    await run(house, text)
    assert len(await house.rows("select 1 from admission")) == 1


async def test_a_failure_that_is_allowed_counts_as_a_success(house: Installation) -> None:
    text = """
workflow: op.allowed
tasks:
  bad: {action: op.odd, allow_failure: true, input: {n: 2}}
  after: {action: op.echo, needs: [bad], input: {value: "{{ tasks.bad.status }}"}}
output: "{{ tasks.after.result }}"
"""
    assert await run(house, text) == "failed"


async def test_retries_of_a_task_replace_those_of_its_action(house: Installation) -> None:
    text = """
workflow: op.retrying
tasks: {one: {action: op.third_time, retry: {max_attempts: 3, initial_delay: 0.05}}}
output: "{{ tasks.one.result }}"
"""
    assert await run(house, text) == 3


@action(pack="op", retry=RetryPolicy(max_attempts=5, initial_delay=0.01))
async def stubborn() -> int:
    raise OSError("not yet")


async def test_a_task_may_ask_for_no_retries_though_its_action_has_some(house: Installation) -> None:
    await house.start(
        stubborn,
        from_yaml("""
workflow: op.once
tasks: {one: {action: op.stubborn, retry: {max_attempts: 1}}}
"""),
    )
    with pytest.raises(ExecutionFailed, match="not yet"):
        await house.client.run("op.once", timeout=30)
    assert (await house.rows("select attempt from execution where task = 'one'"))[0]["attempt"] == 1


async def test_the_timeout_of_a_task_replaces_that_of_its_action(house: Installation) -> None:
    text = """
workflow: op.brief
tasks:
  one: {action: op.nap, timeout: 0.2, next: [{when: timed_out(), do: instead}]}
  instead: {action: op.echo, input: {value: too long}}
output: "{{ tasks.instead.result }}"
"""
    assert await run(house, text) == "too long"
    [attempt] = await house.rows("select worker from attempt where outcome = 'timeout'")
    workers = await house.rows("select name from process where kind = 'worker'")
    assert any(row["name"] in attempt["worker"] for row in workers), (
        "by itself, and not since somebody noticed"
    )


@action(pack="op", on_worker_loss="fail")
async def delicate(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"


LOSE = """
select r.messages from execution e cross join lateral recover_executions(e.claim, array[e.id], 'its worker was lost') r
where e.status = 'running' and e.claim is not null
"""


@pytest.mark.parametrize(
    ("task", "ends"),
    [
        ("{action: op.nap, recovery: {on_worker_loss: fail}, input: {seconds: 60}}", "failed"),
        ("{action: op.nap, recovery: {max_recoveries: 0}, input: {seconds: 60}}", "abandoned"),
        ("{action: op.nap, input: {seconds: 60}}", "requested"),
        ("{action: op.delicate, input: {seconds: 60}}", "failed"),
        ("{action: op.delicate, recovery: {on_worker_loss: rerun}, input: {seconds: 60}}", "requested"),
    ],
)
async def test_the_recovery_of_a_task_replaces_that_of_its_action(
    house: Installation, task: str, ends: str
) -> None:
    await house.start(*ACTIONS, delicate, from_yaml(f"workflow: op.lost\ntasks: {{one: {task}}}\n"))
    id = await house.client.start("op.lost")
    await house.until("select 1 from execution where parent = $1 and status = 'running'", id)
    parts = await house.parts()
    async with parts.database.session().transaction() as tx:
        await tx.stage(LOSE)
    parts.publisher.publish(tx.staged)
    moves = await house.rows(
        "select new from history where old = 'running' and reason = 'its worker was lost'"
    )
    assert [row["new"] for row in moves] == [ends]
    await house.client.cancel(id)


async def test_the_time_of_a_sub_workflow_bounds_all_of_it(house: Installation) -> None:
    inner = from_yaml("workflow: op.endless\ntasks: {one: {action: op.nap}}\n")
    outer = from_yaml("""
workflow: op.outer
tasks:
  inner: {workflow: op.endless, timeout: 0.3, next: [{when: timed_out(), do: instead}]}
  instead: {action: op.echo, input: {value: enough}}
output: "{{ tasks.instead.result }}"
""")
    await house.start(*ACTIONS, inner, outer)
    assert await house.client.run("op.outer", timeout=30) == "enough"
    assert (await statuses(house))["inner"] == "timeout"
    await house.sound()


async def test_workflows_inside_one_another_go_so_deep_and_no_deeper(make_house: Any) -> None:
    endless = from_yaml("""
workflow: op.deeper
parameters: {n: {type: integer, required: true}}
tasks: {again: {workflow: op.deeper, input: {n: "{{ parameters.n + 1 }}"}}}
""")
    async with make_house(max_workflow_depth=4) as house:
        await house.start(*ACTIONS, endless)
        id = await house.client.start("op.deeper", {"n": 1})
        with pytest.raises(ExecutionFailed, match="max_workflow_depth is 4"):
            await house.client.result(id, timeout=30)
        rows = await house.rows(
            "select (p.params ->> 'n')::int as n from workflow w join payload p using (execution_id)"
        )
        assert sorted(row["n"] for row in rows) == [1, 2, 3, 4]
        await house.quiet()
        await house.sound()


async def test_the_exit_task_knows_how_it_ended(house: Installation) -> None:
    text = """
workflow: op.exit
tasks: {bad: {action: op.odd, input: {n: 2}}}
on_exit: {action: op.echo, input: {value: "{{ system.status }}: {{ system.error.message }}"}}
"""
    with pytest.raises(ExecutionFailed, match="2 is even"):
        await run(house, text)
    [row] = await house.rows(
        "select r.result #>> '{}' as said from execution e join result r on r.execution_id = e.id where task = 'on_exit'"
    )
    assert row["said"] == "failed: bad: ValueError: 2 is even"


async def test_rules_decide_which_tasks_run_after_a_failure(house: Installation) -> None:
    text = """
workflow: op.rules
vars: {level: 3}
tasks:
  bad: {action: op.odd, input: {n: 2}}
  good: {action: op.odd, input: {n: 1}}
  mend: {action: op.echo, needs: [bad, good], when: one_failed, input: {value: mended}}
  both: {action: op.echo, needs: [bad, good]}
  always: {action: op.echo, needs: [bad], when: always}
  deep:
    action: op.echo
    needs: [bad, good]
    when: {all: [{failed: bad}, {none: [{failed: good}, {context: level, op: "<", value: 3}]}]}
output: "{{ tasks.mend.result }}"
"""
    assert await run(house, text) == "mended"
    assert await statuses(house) == {
        "bad": "failed",
        "good": "completed",
        "mend": "completed",
        "always": "completed",
        "deep": "completed",
    }


WRONG = {
    "route": ("{workflow: op.inner, route: far}", "route"),
    "retry": ("{workflow: op.inner, retry: {max_attempts: 2}}", "retry"),
    "recovery": ("{workflow: op.inner, recovery: {max_recoveries: 1}}", "recovery"),
    "waiting": ("{workflow: op.inner, timeouts: {waiting: 5}}", "waiting"),
    "input": ("{inquiry: {prompt: Really}, input: {a: 1}}", "input"),
    "twice": ("{action: op.echo, workflow: op.inner}", "action and workflow"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_option_without_effect_is_refused(what: str) -> None:
    task, named = WRONG[what]
    with pytest.raises(DefinitionError, match=named) as refused:
        from_yaml(f"workflow: op.wrong\ntasks: {{one: {task}}}\n")
    assert refused.value.hint


def test_the_exit_task_publishes_nothing() -> None:
    with pytest.raises(DefinitionError, match="publish"):
        from_yaml(
            "workflow: op.wrong\ntasks: {one: {action: op.echo}}\non_exit: {action: op.echo, publish: {a: 1}}\n"
        )
