"""Fan-outs on real servers: batches, windows, and what becomes of the rest when items fail."""

from __future__ import annotations

import itertools

import pytest

from penstock.errors import ExecutionFailed
from tests.flows.installation import Installation
from tests.flows.written import run

pytestmark = pytest.mark.either_transport


async def test_items_go_in_batches_and_so_many_at_a_time(house: Installation) -> None:
    text = """
workflow: op.batches
tasks:
  all: {action: op.echo, with_items: "{{ range(7) | list }}", batch_size: 3, concurrency: 1, input: {value: "{{ item }}"}}
output: "{{ tasks.all.result }}"
"""
    assert await run(house, text) == [[0, 1, 2], [3, 4, 5], [6]]
    times = await house.rows("select created_at, finished_at from execution where task = 'all' order by item")
    assert all(later["created_at"] >= earlier["finished_at"] for earlier, later in itertools.pairwise(times))


async def test_so_many_items_may_fail_and_have_no_result(house: Installation) -> None:
    text = """
workflow: op.tolerant
tasks:
  all: {action: op.odd, with_items: [1, 2, 3, 4], item_failures: {tolerate: "50%"}, input: {n: "{{ item }}"}}
output: "{{ tasks.all.result }}"
"""
    assert await run(house, text) == [1, None, 3, None]


@pytest.mark.parametrize(("then", "left"), [("finish", 3), ("stop", 0)])
async def test_beyond_that_the_rest_is_finished_or_not_begun(
    house: Installation, then: str, left: int
) -> None:
    text = f"""
workflow: op.strict
tasks:
  all:
    {{action: op.odd, with_items: [2, 3, 5, 7], concurrency: 1, item_failures: {{then: {then}}}, input: {{n: "{{{{ item }}}}"}}}}
"""
    with pytest.raises(ExecutionFailed, match=r"all\[0\]: ValueError: 2 is even"):
        await run(house, text)
    assert await house.rows("select 1 from result where error ->> 'message' like '%: 1 of 4 items failed%'")
    assert len(await house.rows("select 1 from execution where status = 'completed'")) == left


async def test_or_the_running_items_are_cancelled(house: Installation) -> None:
    text = """
workflow: op.cancelling
tasks:
  all:
    action: "op.nap"
    with_items: [60, -1, 60]
    item_failures: {then: cancel}
    input: {seconds: "{{ item if item > 0 else 'no' }}"}
"""
    with pytest.raises(ExecutionFailed, match=r"all\[1\]: InvalidInput"):
        await run(house, text)
    counts = "%: 1 of 3 items failed, 2 were cancelled: item 1: %"
    assert await house.rows("select 1 from result where error ->> 'message' like $1", counts)
    rows = await house.rows("select item, status from execution where task = 'all' order by item")
    assert [row["status"] for row in rows] == ["cancelled", "failed", "cancelled"]
