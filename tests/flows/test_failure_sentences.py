"""The sentence about a failure is the same for a program, the command line, the API and lists."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.cli.executions import print_execution
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from penstock.operate import titles
from penstock.operate.executions import described, ending
from penstock.run.root_cause import execution_failed
from penstock.store.executions.execution_list import ExecutionFilter
from tests.flows.installation import AS_USED, Installation

pytestmark = pytest.mark.either_transport

FAILED = asyncio.Event()


@pytest.fixture(autouse=True)
def nothing_failed() -> None:
    FAILED.clear()


@action(pack="cause", retry={"max_attempts": 2, "initial_delay": 0.0})
async def parse(n: int) -> int:
    if n == 1:
        raise ValueError(f"bill-{n}.pdf is not a PDF")
    return n


@action(pack="cause")
async def fails_late() -> None:
    await FAILED.wait()
    raise RuntimeError("too late to be the cause")


@action(pack="cause")
async def says_so() -> None:
    FAILED.set()


@action(pack="cause")
async def stays(n: int) -> int:
    if n == 1:
        raise ValueError("the second")
    await asyncio.sleep(600)
    return n


@action(pack="cause")
async def calls(ctx: DurableContext) -> Any:
    return await ctx.run("cause.outer", {})


@action(pack="cause")
async def raises_own(ctx: DurableContext) -> None:
    try:
        await ctx.run("cause.inner", {})
    except Exception as error:
        raise LookupError("no bill was found") from error


@action(pack="cause")
async def branches(ctx: DurableContext) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.run("cause.stays", {"n": 0}, name="first"))
        group.create_task(ctx.run("cause.stays", {"n": 1}, name="second"))


INNER = from_yaml("""
workflow: cause.inner
tasks: {parse: {action: cause.parse, with_items: [0, 1, 2], input: {n: "{{ item }}"}}}
""")
OUTER = from_yaml("""
workflow: cause.outer
tasks:
  late: {action: cause.fails_late}
  bills: {workflow: cause.inner}
  say: {action: cause.says_so, needs: [bills], when: all_done}
  never: {action: cause.says_so, needs: [late]}
""")
CANCELS = from_yaml("""
workflow: cause.cancels
tasks: {each: {action: cause.stays, with_items: [0, 1, 2], item_failures: {then: cancel}, input: {n: "{{ item }}"}}}
""")
ALL = (parse, fails_late, says_so, stays, calls, raises_own, branches, INNER, OUTER, CANCELS)
FIRST = "bills.parse[1], attempt 2: ValueError: bill-1.pdf is not a PDF"


async def failure(house: Installation, ref: str) -> tuple[str, Any]:
    """Return the sentence that a program gets, and the execution. All other outputs must have the same."""
    id = await house.client.start(ref)
    with pytest.raises(ExecutionFailed) as failed:
        await house.client.result(id, timeout=30)
    sentence = str(failed.value).removeprefix(f"execution {id} ended as failed: ")
    document = await described(house.session, id)
    assert document is not None
    assert document["failure"] == sentence
    outcome = await ending(house.session, id)
    assert outcome["failure"] == sentence
    assert str(execution_failed(id, "failed", outcome["error"])) == str(failed.value)
    rows = await titles.listed(house.session, ExecutionFilter(), limit=100)
    assert {row.id: row.failure for row in rows}[id] == sentence
    why = await house.client.why(id)
    assert why.sentence.startswith("Failed ")
    assert f" ago: {sentence}" in why.sentence
    return sentence, id


async def test_nested_run_names_its_first_failure(
    house: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    await house.start(*ALL, **AS_USED)
    sentence, id = await failure(house, "cause.outer")
    assert sentence == FIRST
    document = await described(house.session, id)
    assert document is not None
    assert document["error"]["message"].startswith("bills: TaskFailed: ")
    assert document["error"]["message"].endswith("; late: RuntimeError: too late to be the cause")
    print_execution(document)
    assert f"failed: {FIRST}" in capsys.readouterr().out
    await house.quiet()
    await house.rows("select * from archive_finished(interval '0', 100)")
    rows = await titles.listed(house.session, ExecutionFilter(), limit=100)
    assert {row.id: row.failure for row in rows}[id] == FIRST
    await house.sound()


async def test_durable_function_names_the_failure_inside(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    assert (await failure(house, "cause.calls"))[0] == f"outer.{FIRST}"
    assert (await failure(house, "cause.raises_own"))[0] == "LookupError: no bill was found"
    await house.quiet()


async def test_branch_cancelled_for_another_is_no_cause(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    assert (await failure(house, "cause.branches"))[0] == "second: ValueError: the second"


async def test_cancelled_items_are_counted_and_not_named(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    sentence, id = await failure(house, "cause.cancels")
    assert sentence == "each[1]: ValueError: the second"
    document = await described(house.session, id)
    assert document is not None
    message = document["error"]["message"]
    assert (
        message == "each: ItemsFailed: 1 of 3 items failed, 2 were cancelled: item 1: ValueError: the second"
    )
    await house.quiet()
    await house.sound()


@action(pack="cause")
async def fails_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("half done") from None


async def test_execution_that_fails_when_cancelled_says_the_reason_first(house: Installation) -> None:
    await house.start(fails_when_cancelled)
    id = await house.client.start("cause.fails_when_cancelled")
    await house.until("select from execution where status = 'running'")
    await house.client.cancel(id, reason="asked by ada")
    sentence = "asked by ada (ValueError: half done)"
    with pytest.raises(ExecutionFailed, match=re.escape(f"ended as cancelled: {sentence}")):
        await house.client.result(id, timeout=30)
    assert (await house.client.why(id)).sentence.endswith(f" ago: {sentence}.")
    document = await described(house.session, id)
    assert document is not None
    assert document["failure"] == sentence
    listed = await house.client.executions(ExecutionFilter())
    await titles.add_failures(house.session, listed)
    assert [row.failure for row in listed] == [sentence]


async def test_cancelled_execution_says_its_reason(house: Installation) -> None:
    await house.apply(*ALL)
    id = await house.client.start("cause.parse", {"n": 0}, delay=3600)
    await house.client.cancel(id, reason="asked by ada")
    with pytest.raises(ExecutionFailed, match="ended as cancelled: asked by ada"):
        await house.client.result(id, timeout=30)
    why = await house.client.why(id)
    assert why.sentence.endswith(" ago: asked by ada.")
    assert why.sentence.startswith("Was cancelled ")
