"""`crash_everywhere` plays what steps publish and start, and refuses what is not a durable function."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import DurableContext, action, current
from penstock.errors import ExecutionFailed, InvalidInput
from penstock.testing import DurableRun, crash_everywhere
from tests.penstock.testing import invoices, shop


@crash_everywhere
async def test_step_publishes_and_starts_once_with_a_key(run: DurableRun) -> None:
    assert await run(invoices.settle, invoice=7) == "receipt of 7"
    assert [event.payload for event in run.published] == [{"invoice": 7}]
    [keyed] = [started for started in run.started if started.key]
    assert (keyed.ref, keyed.status, keyed.result) == ("invoices.receipt", "completed", "receipt of 7")
    assert "sent 7" in run.log


@crash_everywhere
async def test_run_receives_the_signal_of_its_step(run: DurableRun) -> None:
    assert await run(invoices.tells_itself) == "card"
    assert {(name, value) for _, name, value in run.signalled} == {("paid", "card")}


@crash_everywhere
async def test_step_signals_the_function_with_a_key(run: DurableRun) -> None:
    assert await run(invoices.tells_invoice) is True
    assert set(run.signalled) == {("invoice-7", "paid", "card")}


async def publish_without_key() -> None:
    await current().publish("invoices.paid", {"invoice": 1})


@action(pack="keyless")
async def keyless(ctx: DurableContext) -> None:
    await ctx.step("send", publish_without_key)


def test_step_without_a_key_publishes_again_after_a_crash() -> None:
    counts: list[int] = []

    async def play(run: DurableRun) -> None:
        await run(keyless)
        counts.append(len(run.published))

    crash_everywhere(play)()
    assert (counts[0], max(counts)) == (1, 2)


async def child_log(word: str) -> Any:
    return current().action, word


@action(pack="keyless")
async def with_child(ctx: DurableContext) -> Any:
    return await ctx.run("keyless.other", word="a")


@crash_everywhere
async def test_child_finds_its_own_run(run: DurableRun) -> None:
    run.child("keyless.other", child_log)
    assert await run(with_child) == ["keyless.other", "a"]


async def test_transactional_request_in_a_step_is_refused() -> None:
    with pytest.raises(Exception, match="cannot use transactional requests"):
        await DurableRun()(invoices.settle_transactional)


async def test_body_is_told_to_use_a_step() -> None:
    with pytest.raises(Exception, match="is replayed"):
        await DurableRun()(invoices.starts_in_body)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (shop.deliver, "shop.deliver is not a durable function .workflow"),
        (shop.charge, "shop.charge is not a durable function .action"),
        (shop.shout, "shop.shout is not a durable function"),
        ("shop.charge", "which is text"),
        (publish_without_key, "is not a durable function"),
    ],
)
def test_target_that_is_not_durable_is_refused(target: Any, kind: str) -> None:
    async def play(run: DurableRun) -> None:
        await run(target, order=7)

    with pytest.raises(InvalidInput, match=kind):
        crash_everywhere(play)()


@action(pack="refused")
async def asks_for_number(ctx: DurableContext, schema: dict[str, Any]) -> Any:
    return await ctx.ask("?", schema=schema, timeout="1d", default="a text")


@action(pack="refused")
async def waits_for_other(ctx: DurableContext) -> Any:
    return await ctx.wait_for("refused.paid", when="event.payload.order == other")


async def test_question_is_refused_as_on_a_worker() -> None:
    with pytest.raises(ExecutionFailed, match="DefinitionError: the schema of the answer"):
        await DurableRun()(asks_for_number, schema={"type": "nonsense"})
    with pytest.raises(ExecutionFailed, match="InvalidInput: the default answer: expected integer"):
        await DurableRun()(asks_for_number, schema={"type": "integer"})


async def test_answer_that_its_schema_refuses_fails_the_test() -> None:
    run = DurableRun()
    run.answer(7, after="1h")
    with pytest.raises(ExecutionFailed, match="expected string, got integer: no such answer is accepted"):
        await run(asks_for_number, schema={"type": "string"})


async def test_condition_with_undefined_name_is_refused_as_on_a_worker() -> None:
    with pytest.raises(
        ExecutionFailed, match=r"DefinitionError: the condition .*`other` is not defined here"
    ):
        await DurableRun()(waits_for_other)


@action(pack="keyless")
async def runs_unknown_child(ctx: DurableContext) -> Any:
    return await ctx.run("keyless.unknown", n=1)


async def test_error_of_unknown_child_has_the_line_to_add() -> None:
    with pytest.raises(
        ExecutionFailed, match=r"run\.child\('keyless\.unknown', lambda \*\*parameters: \.\.\.\)"
    ):
        await DurableRun()(runs_unknown_child)
