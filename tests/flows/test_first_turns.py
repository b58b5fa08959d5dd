"""Workflows that begin in their submit: no executor is asked, and what cannot begin there begins as before.

The first start of a workflow in a process is left to an executor, and the second loads the engine beside it. From then on
the first start of each workflow is left to an executor, too, and the second reads beside it what the third needs.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock import Limit, action
from penstock.client.client import Client
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation


@action(pack="first")
async def double(n: int) -> int:
    return n * 2


@action(pack="first", limits=[Limit(1)])
async def one_by_one(n: int) -> int:
    return n


@action(pack="first")
async def failing() -> None:
    raise ValueError("as it should")


CHAIN = from_yaml("""
workflow: first.chain
parameters: {n: {type: integer, required: true}}
tasks:
  one: {action: first.double, input: {n: "{{ parameters.n }}"}}
  two: {action: first.double, needs: [one], input: {n: "{{ tasks.one.result }}"}}
output: "{{ tasks.two.result }}"
""")
TWO = from_yaml("""
workflow: first.two
parameters: {n: {type: integer, default: 1}}
vars: {seen: "{{ parameters.n }}"}
tasks:
  left: {action: first.double, input: {n: 1}}
  right: {action: first.double, input: {n: 2}}
  both: {action: first.double, needs: [left, right], input: {n: "{{ tasks.left.result + tasks.right.result }}"}}
output: "{{ tasks.both.result + vars.seen }}"
""")
STAMPED = from_yaml("""
workflow: first.stamped
tasks:
  one: {action: first.double, input: {n: "{{ 1 if system.created_at > '2020' else 0 }}"}}
output: "{{ tasks.one.result }}"
""")
LIMITED = from_yaml("""
workflow: first.limited
tasks:
  one: {action: first.one_by_one, input: {n: 3}}
output: "{{ tasks.one.result }}"
""")
BROKEN = from_yaml("""
workflow: first.broken
parameters: {n: {type: integer}}
tasks:
  one: {action: first.double, input: {n: "{{ 1 // parameters.n }}"}}
""")
EMPTY = from_yaml("""
workflow: first.empty
tasks:
  one: {action: noop, input: {n: 1}}
output: "{{ tasks.one.result }}"
""")
FAILING = from_yaml("""
workflow: first.mended
tasks:
  one: {action: first.failing, allow_failure: true}
  mend: {action: first.double, needs: [one], input: {n: 4}}
output: "{{ tasks.mend.result }}"
""")
ALL = (double, one_by_one, failing, CHAIN, TWO, STAMPED, LIMITED, BROKEN, EMPTY, FAILING)


async def starters(house: Installation, workflow: UUID) -> set[str]:
    """Return the kinds of the processes that created the tasks of a workflow before any of them ended."""
    rows = await house.rows(
        "select distinct split_part(h.actor, ':', 1) as actor from history h join execution e on e.id = h.execution_id"
        " where e.parent = $1 and h.old is null and not exists (select from history p join execution x on x.id = p.execution_id"
        " where x.parent = $1 and p.new = 'completed' and p.at < h.at)",
        workflow,
    )
    return {row["actor"] for row in rows}


async def ran(
    house: Installation, ref: str, params: dict[str, Any], times: int = 5
) -> tuple[list[Any], list[set[str]]]:
    """Run a workflow some times. Return the results, and for each the kinds of processes that began it."""
    results, begun = [], []
    for _ in range(times):
        id = await house.client.start(ref, params)
        results.append(await house.client.result(id, timeout=30))
        begun.append(await starters(house, id))
        await settled(house.client)
    return results, begun


async def settled(client: Client) -> None:
    """Wait until all that first turns need, of what was started so far, is loaded and read."""
    await client._submits.settle()


async def test_later_starts_of_workflow_begin_in_their_submit(house: Installation) -> None:
    await house.start(*ALL)
    results, begun = await ran(house, "first.chain", {"n": 3})
    assert results == [12] * 5
    assert begun == [*[{"executor"}] * 4, {"client"}]
    results, begun = await ran(house, "first.two", {})
    assert results == [13] * 5
    assert begun == [*[{"executor"}] * 2, *[{"client"}] * 3]
    await house.quiet()
    await house.sound()


async def test_engine_is_loaded_by_second_start_beside_it(house: Installation) -> None:
    await house.start(*ALL)
    submits = house.client._submits
    assert await house.client.run("first.chain", {"n": 1}, timeout=30) == 4
    assert submits._engine is None
    assert await house.client.run("first.two", timeout=30) == 13
    assert submits._engine is not None
    await submits.settle()
    assert submits._first_turns is not None


async def test_begun_workflow_is_assigned_without_a_message(house: Installation) -> None:
    await house.start(*ALL)
    await ran(house, "first.chain", {"n": 1})
    await house.until("select from permit having count(*) >= 1")
    [before] = await house.rows("select last_value from outbox_id_seq")
    assert await house.client.run("first.chain", {"n": 5}, timeout=30) == 20
    assert await house.rows("select last_value from outbox_id_seq") == [before]


@pytest.mark.parametrize(
    ("ref", "result"),
    [("first.stamped", 2), ("first.limited", 3), ("first.empty", {"n": 1}), ("first.mended", 8)],
)
async def test_workflow_that_needs_more_runs_all_the_same(house: Installation, ref: str, result: Any) -> None:
    await house.start(*ALL)
    results, begun = await ran(house, ref, {}, times=6)
    assert results == [result] * 6
    assert ("client" in begun[-1]) == (ref == "first.mended")
    await house.quiet()
    await house.sound()


async def test_input_that_cannot_be_rendered_fails_as_in_an_executor(house: Installation) -> None:
    await house.start(*ALL)
    messages = set()
    for n in (1, 1, 1, 1, 1, 0, 0):
        await settled(house.client)
        id = await house.client.start("first.broken", {"n": n})
        if n:
            assert await house.client.result(id, timeout=30) is None
            continue
        with pytest.raises(ExecutionFailed) as failed:
            await house.client.result(id, timeout=30)
        messages.add(failed.value.message.replace(str(id), "it"))
    assert len(messages) == 1


async def test_new_version_of_a_task_is_used_by_next_start(house: Installation) -> None:
    """The client that starts the workflow has the old version in its memory: another process applies the new one."""
    await house.start(*ALL)

    @action(ref="first.double")
    async def triple(n: int) -> int:
        """Return three times the number."""
        return n * 3

    async with Client.connect(house.settings()) as other:
        for _ in range(5):
            assert await other.run("first.chain", {"n": 1}, timeout=30) == 4
            await settled(other)
        await house.worker(triple)
        await house.apply(triple)
        id = await other.start("first.chain", {"n": 1})
        await other.result(id, timeout=30)
    [row] = await house.rows(
        "select count(*) as old from execution e join catalog c on c.ref = 'first.double' and c.kind = 'action'"
        " where e.parent = $1 and e.task = 'one' and e.definition_id <> c.definition_id",
        id,
    )
    assert row["old"] == 0


async def test_start_below_a_hold_waits(house: Installation) -> None:
    await house.start(*ALL)
    await ran(house, "first.chain", {"n": 1})
    await house.client.holds.hold("action", "first.double", by="ada", reason="a test")
    id = await house.client.start("first.chain", {"n": 1})
    await house.until("select from execution where parent = $1 and status = 'requested'", id)
    await house.client.holds.release("action", "first.double")
    assert await house.client.result(id, timeout=30) == 4


async def test_begun_workflow_can_be_cancelled_and_run_again(house: Installation) -> None:
    await house.start(*ALL)
    await ran(house, "first.chain", {"n": 1})
    id = await house.client.start("first.chain", {"n": 2})
    await house.client.cancel(id)
    await house.until("select from execution where id = $1 and finished_at is not null", id)
    again = await house.client.rerun(id, by="ada")
    assert await house.client.result(again, timeout=30) == 8
    await house.quiet()
    await house.sound()


async def test_concurrent_starts_all_complete(house: Installation) -> None:
    await house.start(*ALL)
    await ran(house, "first.chain", {"n": 1})
    results = await asyncio.gather(
        *(house.client.run("first.chain", {"n": n}, timeout=60) for n in range(40))
    )
    assert results == [4 * n for n in range(40)]
    await house.quiet()
    await house.sound()
