"""Durable functions by themselves: what is recorded, replayed, refused. Crashes are those of the testing kit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.engine.durable.records import Record
from penstock.errors import DefinitionError, ExecutionFailed, StepFailed
from penstock.language.definitions.action import Action
from penstock.testing import DurableRun, crash_everywhere
from tests.penstock.engine.durable.attempts import Outside, attempt_of, memory_of_run

CALLS: Counter[str] = Counter()


async def note(name: str) -> str:
    CALLS[name] += 1
    return name


async def fail() -> None:
    raise OSError("away")


def changing(*versions: Callable[..., Any]) -> Action[..., Any]:
    """A durable action whose code is another one in each attempt; the last one stays."""
    tried = iter(versions)
    last: list[Any] = []

    async def function(ctx: DurableContext) -> Any:
        last[:] = [next(tried, last[0] if last else None)]
        return await last[0](ctx)

    return action(pack="t", ref="t.changing")(function)


async def nap(ctx: DurableContext) -> None:
    """Suspends the run: what comes after it is another attempt."""
    await ctx.sleep("1d")


async def before(ctx: DurableContext) -> Any:
    await ctx.step("a", note, "a")
    await ctx.step("b", note, "b")
    await nap(ctx)


@pytest.fixture(autouse=True)
def _anew() -> None:
    CALLS.clear()


async def refused(after: Callable[..., Any], says: str) -> None:
    with pytest.raises(ExecutionFailed, match=says):
        await DurableRun()(changing(before, after))


async def test_a_step_of_another_name_stops_the_run_and_both_are_named() -> None:
    async def after(ctx: DurableContext) -> None:
        await ctx.step("a", note, "a")
        await ctx.step("c", note, "c")

    await refused(
        after, "ReplayMismatch: at position 2 the function requests step c, .* recorded step b at position 2"
    )
    assert CALLS == {"a": 1, "b": 1}


async def test_a_step_of_another_kind_stops_the_run() -> None:
    async def after(ctx: DurableContext) -> None:
        await ctx.step("a", note, "a")
        await ctx.run("t.other", name="b")

    await refused(after, "requests run b, but its run has recorded step b")


async def test_an_unrequested_record_stops_the_run() -> None:
    async def after(ctx: DurableContext) -> str:
        return str(await ctx.step("a", note, "a"))

    await refused(after, "has ended, but its run has recorded step b at position 2")


async def test_code_that_catches_everything_cannot_pass_a_mismatch() -> None:
    async def after(ctx: DurableContext) -> str:
        try:
            return str(await ctx.step("c", note, "c"))
        except Exception:
            return "went on"

    await refused(after, "requests step c")


async def test_a_version_keeps_old_runs_on_the_old_way() -> None:
    async def after(ctx: DurableContext) -> bool:
        await ctx.step("a", note, "a")
        changed = ctx.version("change-1")
        if changed:
            await ctx.step("c", note, "c")
        await ctx.step("b", note, "b")
        await nap(ctx)
        return changed

    assert await DurableRun()(changing(before, after)) is False
    new = DurableRun()
    assert await new(changing(after)) is True
    assert new.recorded == ["a", "change-1", "c", "b", "sleep"]


@crash_everywhere
async def test_branches_get_back_their_own_steps_whichever_was_quicker(run: DurableRun) -> None:
    CALLS.clear()

    async def branch(ctx: DurableContext, n: int) -> list[str]:
        first = await ctx.step("first", slow, n)
        return [first, await ctx.step("second", note, f"second of {n}")]

    async def slow(n: int) -> str:
        for _ in range(20 - 5 * n if CALLS["slow"] < 3 else 5 * n):
            await asyncio.sleep(0)
        CALLS["slow"] += 1
        return f"first of {n}"

    @action(pack="t")
    async def branches(ctx: DurableContext) -> list[Any]:
        both = await asyncio.gather(*(branch(ctx, n) for n in range(3)))
        flat = await asyncio.gather(*(ctx.step("flat", note, str(n)) for n in range(3)))
        return [*both, flat]

    assert await run(branches) == [
        *([f"first of {n}", f"second of {n}"] for n in range(3)),
        ["0", "1", "2"],
    ]


@crash_everywhere
async def test_recorded_values_stay(run: DurableRun) -> None:
    seen: set[str] = set()

    @action(pack="t")
    async def values(ctx: DurableContext) -> list[Any]:
        mine = [ctx.now().isoformat(), ctx.random(), str(ctx.uuid()), str(ctx.uuid())]
        await ctx.step("use", lambda: seen.add(str(mine[2])))
        return mine

    result = await run(values)
    assert seen == {result[2]}
    assert result[2] != result[3]


@crash_everywhere
async def test_a_failed_step_stays_failed_where_the_function_went_on(run: DurableRun) -> None:
    @action(pack="t", retry={"max_attempts": 3, "initial_delay": 0})
    async def caught(ctx: DurableContext) -> str:
        try:
            await ctx.step("try", fail)
        except StepFailed as error:
            return str(await ctx.step("instead", note, error.type))
        return "no"

    assert await run(caught) == "OSError"


@crash_everywhere
async def test_a_cancelled_run_cleans_up(run: DurableRun) -> None:
    done: list[str] = []

    @action(pack="t")
    async def long(ctx: DurableContext) -> None:
        ctx.on_failure(lambda: done.append("undone"))
        try:
            await ctx.sleep("10d")
        finally:
            await ctx.step("clean", lambda: done.append("clean"))

    run.cancel(after="1d")
    with pytest.raises(ExecutionFailed, match="asked to end as cancelled"):
        await run(long)
    assert [one for n, one in enumerate(done) if one not in done[:n]] == ["clean", "undone"]


INSIDE_OF_A_STEP: dict[str, Callable[[DurableContext], Any]] = {
    "step inner": lambda ctx: ctx.step("inner", note, "a"),
    "value now": lambda ctx: ctx.now(),
    "value random": lambda ctx: ctx.random(),
    "value uuid": lambda ctx: ctx.uuid(),
    "sleep sleep": lambda ctx: ctx.sleep(1),
    "run other": lambda ctx: ctx.run("t.other"),
    "signal go": lambda ctx: ctx.signal("go"),
    "first": lambda ctx: ctx.first(),
    "on_failure": lambda ctx: ctx.on_failure(note, "a"),
}


@pytest.mark.parametrize("operation", INSIDE_OF_A_STEP)
async def test_steps_do_not_hold_steps(operation: str) -> None:
    @action(pack="t")
    async def nested(ctx: DurableContext) -> None:
        async def inner() -> None:
            INSIDE_OF_A_STEP[operation](ctx)

        await ctx.step("outer", inner)

    with pytest.raises(
        ExecutionFailed, match=f"DefinitionError: {operation} is called inside the step outer"
    ):
        await DurableRun()(nested)


class Refund:
    """An object that can be called and has a name of its own."""

    name = "refund"

    async def __call__(self, item: str) -> str:
        return item


@action(pack="t")
async def release(item: str) -> str:
    return item


UNDONE: dict[str, tuple[Callable[..., Any], str]] = {
    "a function": (note, "on failure note"),
    "an action": (release, "on failure release"),
    "an object with a name": (Refund(), "on failure refund"),
    "an object without a name": (partial(note), "on failure undo"),
}


@pytest.mark.parametrize("name", UNDONE)
async def test_undo_is_recorded_under_its_function(name: str) -> None:
    function, recorded = UNDONE[name]

    @action(pack="t")
    async def fails(ctx: DurableContext) -> None:
        ctx.on_failure(function, "first")
        ctx.on_failure(function, "last")
        await ctx.step("fail", fail)

    run = DurableRun()
    with pytest.raises(ExecutionFailed, match=r"OSError: away$"):
        await run(fails)
    results = [(str(record.key), record.result) for record in run._memory.records.values()]
    assert results[1:] == [(f"{recorded} (2)", '"last"'), (recorded, '"first"')]


async def test_undo_begins_as_a_started_step() -> None:
    begun: list[tuple[str, str]] = []

    class Begins(Outside):
        async def begin(self, record: Record) -> None:
            begun.append((str(record.key), record.status))
            await super().begin(record)

    async def fails(ctx: DurableContext) -> None:
        ctx.on_failure(note, "first")
        await ctx.step("fail", fail)

    outcome = await attempt_of(Begins(memory_of_run()), fails).run({})
    assert outcome.kind == "failed"
    assert begun == [("fail", "started"), ("on failure note", "started")]


async def test_error_names_everything_that_was_not_undone() -> None:
    async def stays(item: str) -> None:
        raise LookupError(f"no {item}")

    @action(pack="t")
    async def fails(ctx: DurableContext) -> None:
        ctx.on_failure(stays, "a")
        ctx.on_failure(note, "b")
        ctx.on_failure(stays, item="c")
        await ctx.step("fail", fail)

    not_undone = "; ".join(
        f"step on failure stays{nth} failed: LookupError: no {item}"
        for nth, item in ((r" \(2\)", "c"), ("", "a"))
    )
    with pytest.raises(ExecutionFailed, match=rf"OSError: away \(and not undone: {not_undone}\)$"):
        await DurableRun()(fails)
    assert CALLS["b"] == 1


@pytest.mark.parametrize("name", ["", "a/b", 3, "x" * 201])
async def test_a_name_that_cannot_be_one_is_refused(name: Any) -> None:
    @action(pack="t")
    async def named(ctx: DurableContext) -> None:
        await ctx.step(name, note, "a")

    with pytest.raises(ExecutionFailed, match="a step's name"):
        await DurableRun()(named)


@crash_everywhere
async def test_branches_share_a_signal_in_the_order_of_calls(run: DurableRun) -> None:
    @action(pack="t")
    async def shared(ctx: DurableContext) -> list[Any]:
        async def one(name: str) -> Any:
            return await ctx.step(name, note, await ctx.signal("go"))

        return list(await asyncio.gather(one("a"), one("b")))

    run.signal("go", "first", after=5)
    run.signal("go", "second", after=9)
    assert await run(shared) == ["first", "second"]


async def test_a_run_that_waits_for_an_absent_signal_reports_it() -> None:
    @action(pack="t")
    async def waits(ctx: DurableContext) -> None:
        await ctx.signal("go")

    with pytest.raises(AssertionError, match=r"run\.signal"):
        await DurableRun()(waits)


def test_a_failure_of_a_test_says_where_the_run_was_crashed() -> None:
    @action(pack="t")
    async def twice(ctx: DurableContext) -> None:
        await ctx.step("count", note, "count")

    @crash_everywhere
    async def test(run: DurableRun) -> None:
        CALLS.clear()
        await run(twice)
        assert CALLS["count"] == 1

    with pytest.raises(AssertionError) as failed:
        test()
    assert failed.value.__notes__ == ["The run was crashed before it recorded step count (crash 1 of 2)."]


def test_a_durable_action_says_so_and_takes_no_context_from_outside() -> None:
    @action(pack="t")
    async def made(ctx: DurableContext, n: int) -> int:
        """Says."""
        return n  # a comment

    assert made.durable
    assert list(made.parameters_schema["properties"]) == ["n"]
    digest = made.body()["durable"]

    @action(pack="t", ref="t.made", timeout=3)
    async def other(ctx: DurableContext, n: int) -> int:
        return n + 1

    assert other.body()["durable"] != digest
    with pytest.raises(DefinitionError, match="awaits what it does"):

        @action(pack="t")
        def plain(ctx: DurableContext) -> None: ...

    with pytest.raises(DefinitionError, match="event loop"):

        @action(pack="t", executor="process")
        async def elsewhere(ctx: DurableContext) -> None: ...


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5])
async def test_map_refuses_concurrency_below_one(concurrency: Any) -> None:
    @action(pack="t")
    async def maps(ctx: DurableContext) -> Any:
        return await ctx.map("t.double", [{"n": 1}], concurrency=concurrency)

    with pytest.raises(ExecutionFailed, match=r"DefinitionError: concurrency .* at least 1, not"):
        await DurableRun()(maps)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_step_whose_function_exits_has_failed(error: type[BaseException]) -> None:
    async def exits() -> None:
        CALLS["exits"] += 1
        raise error(3)

    async def function(ctx: DurableContext) -> str:
        with pytest.raises(StepFailed) as failed:
            await ctx.step("exits", exits, retry={"max_attempts": 2, "initial_delay": 0})
        return failed.value.type

    async with asyncio.timeout(20):
        assert await DurableRun()(changing(function)) == error.__name__
    assert CALLS["exits"] == 2


WRONG_ARGUMENTS: dict[str, tuple[Callable[[DurableContext], Any], str]] = {
    "sleep": (lambda ctx: ctx.sleep(-1), "the duration of ctx.sleep must be between 0 and 100 years, not -1"),
    "sleep text": (lambda ctx: ctx.sleep("soon"), "the duration of ctx.sleep is not a duration: 'soon'"),
    "signal": (lambda ctx: ctx.signal("go", timeout=-1), "the timeout of signal 'go' must be between"),
    "ask": (lambda ctx: ctx.ask("ok?", timeout="soon"), "the timeout of 'ask' is not a duration"),
    "timeout": (lambda ctx: ctx.timeout(-1), "the duration of ctx.timeout must be between"),
    "retry": (lambda ctx: ctx.step("a", note, "a", retry=0), "the retry of the step 'a' is 0: max_attempts"),
    "map": (lambda ctx: ctx.map("t.double", [1]), r"item 0 of ctx.map\(t.double\) is not a mapping"),  # type: ignore[list-item]
    "child": (lambda ctx: ctx.run("t.double", n="\0"), "what run 'double' is given holds a NUL"),
    "state": (lambda ctx: ctx.set("seen", "\0"), "the state 'seen' holds a NUL"),
}


@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
async def test_error_of_wrong_argument_names_its_subject(name: str) -> None:
    call, says = WRONG_ARGUMENTS[name]

    @action(pack="t", ref="t.wrong")
    async def function(ctx: DurableContext) -> None:
        call(ctx)

    with pytest.raises(ExecutionFailed, match=says) as failed:
        await DurableRun()(function)
    assert "DefinitionError" in str(failed.value) or "ResultNotStorable" in str(failed.value)
