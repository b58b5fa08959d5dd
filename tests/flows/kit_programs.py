"""Programs that are played in a simulation and in an installation: `PROGRAMS`, and the events of `EVENTS`."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock import (
    Batch,
    Defer,
    DurableContext,
    Item,
    NonRetryable,
    Retry,
    Rule,
    Trigger,
    action,
    current,
    each,
    inquiry,
    later,
    on_exit,
    system,
    workflow,
)
from penstock.language.workflows import from_yaml

FAST = {"max_attempts": 3, "initial_delay": 0.05, "jitter": 0}
LARGE = 300_000


class Declined(Exception):
    pass


class Odd(Declined):
    pass


@dataclasses.dataclass
class Pair:
    first: int
    second: Any = None


class Color(enum.Enum):
    RED = "r"


# -- attempts and retries ----------------------------------------------------------------------------------------------


@action(pack="kit")
async def echo(x: Any = None) -> Any:
    return x


@action(pack="kit")
async def bad(x: Any = None) -> None:
    raise Declined(f"bad {x}")


@action(pack="kit")
async def odd(x: int) -> int:
    if x % 2:
        raise Odd(f"odd {x}")
    return x


@action(pack="kit", retry=FAST)
async def third_time() -> int:
    if current().attempt < 3:
        raise Declined(f"number {current().attempt}")
    return current().attempt


@action(pack="kit", retry=FAST)
async def always_declined() -> None:
    raise Declined("always")


@action(pack="kit", retry={**FAST, "retry_on": ["Declined"]})
async def retried_subclass() -> None:
    raise Odd("s")


@action(pack="kit", retry={**FAST, "never_on": ["Declined"]})
async def excluded_subclass() -> None:
    raise Odd("s")


@action(pack="kit", retry={**FAST, "retry_on": ["ValueError"]})
async def mixed_group() -> None:
    raise ExceptionGroup("g", [ValueError("a"), KeyError("b")])


@action(pack="kit", retry=FAST)
async def not_retried() -> None:
    raise NonRetryable("no")


@action(pack="kit")
async def asks_for_retry() -> None:
    raise Retry(after=0.05)


@action(pack="kit", timeouts={"total": 1}, retry={"max_attempts": 50, "initial_delay": 30, "jitter": 0})
async def out_of_time() -> None:
    raise Declined("t")


@action(pack="kit")
async def cancels_itself() -> None:
    raise asyncio.CancelledError


@action(pack="kit")
async def exits() -> None:
    raise SystemExit(3)


@action(pack="kit")
async def long_message() -> None:
    raise Declined("m" * 20_000)


@action(pack="kit")
async def defers() -> Any:
    state = current().state or {"n": 0}
    if state["n"] < 2:
        raise Defer(delay=0.05, state={"n": state["n"] + 1})
    return [state, current().attempt]


@action(pack="kit")
async def defers_with(size: int = 0) -> Any:
    if current().attempt < 2:
        raise Defer(delay=0, state={1} if not size else "x" * size)
    return len(current().state or "")


@action(pack="kit")
def in_thread(x: int = 1) -> int:
    print("a line")
    return x + current().attempt


# -- results and parameters ----------------------------------------------------------------------------------------------


@action(pack="kit")
async def gives(name: str) -> Any:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    return {
        "tuple": (1, {"a": (2,)}),
        "set": {1, 2},
        "instant": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "decimal": decimal.Decimal("1.5"),
        "id": uuid.UUID(int=5),
        "enum": Color.RED,
        "dataclass": Pair(1, (2,)),
        "nan": float("nan"),
        "infinity": {"a": float("inf")},
        "huge integer": 2**64,
        "integer key": {1: "a"},
        "bytes": b"x",
        "nul": "a\0b",
        "surrogate": "\ud800",
        "deep": deep,
        "large": "x" * LARGE,
        "members": {"bb": -0.0, "a": 1e16},
    }[name]


@action(pack="kit")
async def typed(
    a: int = 1,
    b: float = 1,
    c: str | None = None,
    d: Literal["x", "y"] = "x",
    e: list[int] = [],  # noqa: B006
    f: datetime.datetime | None = None,
    g: bool = False,
) -> list[Any]:
    return [repr(a), repr(b), c, d, e, repr(f), g]


@action(pack="kit")
async def open_ended(a: int, **more) -> list[Any]:  # type: ignore[no-untyped-def]
    return [a, more]


@action(pack="kit", batch=Batch(3, within=0.05))
async def batched(items: list[Item[Pair]]) -> list[Any]:
    return [Odd("odd") if item.input.first % 2 else item.input.first for item in items]


@action(pack="kit", batch=Batch(3, within=0.05))
async def batched_short(items: list[Item[Pair]]) -> list[Any]:
    return []


# -- workflows -------------------------------------------------------------------------------------------------------------


@workflow(pack="kit")
def fails_beside() -> Any:
    return {"a": bad(x=1), "b": echo(x=2)}


@workflow(pack="kit")
def handles() -> Any:
    failed = bad(x=1)
    return {"c": echo(x="handled").after(failed).when("one_failed").set(name="c")}


@workflow(pack="kit")
def fans_out() -> Any:
    return odd(x=each([2, 4, 6]))


@workflow(pack="kit")
def fans_out_badly() -> Any:
    return odd(x=each([1, 2, 3, 4]))


@workflow(pack="kit")
def fans_out_tolerantly() -> Any:
    return odd(x=each([1, 2, 3, 4])).set(item_failures={"tolerate": 2})


@workflow(pack="kit")
def exits_after_failure() -> Any:
    failed = bad(x=1)
    on_exit(echo, x=system.status)
    return failed


@workflow(pack="kit")
def fails_on_exit() -> Any:
    done = echo(x=1)
    on_exit(bad, x=system.status)
    return done


@workflow(pack="kit")
def reads_missing_field() -> Any:
    return {"t": echo(x={"k": 1}).nope}


@workflow(pack="kit")
def refused_input() -> Any:
    return odd(x=echo(x="no"))


@workflow(pack="kit")
def default_answer() -> Any:
    return {"r": inquiry("q", schema={"type": "boolean"}, timeout="300ms", default=False).set(name="q")}


@workflow(pack="kit")
def no_answer() -> Any:
    return {"r": inquiry("q", schema={"type": "boolean"}, timeout="300ms").set(name="q")}


@workflow(pack="kit")
def answered() -> Any:
    return {"r": inquiry("q", schema={"type": "boolean"}).set(name="q")}


@workflow(pack="kit")
def allows_failure() -> Any:
    return {"z": echo(x=2).after(bad(x=1).set(allow_failure=True))}


@workflow(pack="kit", timeout="500ms")
def out_of_time_waiting() -> Any:
    return {"r": inquiry("q").set(name="q")}


@workflow(pack="kit")
def nested_failure() -> Any:
    return fails_beside()


@workflow(pack="kit")
def large_output() -> Any:
    return {"all": [echo(x="x" * 140_000).set(name="a"), echo(x="x" * 140_000).set(name="b")]}


@workflow(pack="kit")
def asks_freely() -> Any:
    return {"r": inquiry("q").set(name="q")}


waits_for_event = from_yaml("""
workflow: kit.waits_for_event
tasks:
  wait: {wait_for_event: {trigger: kit.noted, timeout: 0.3}}
output: {r: "{{ tasks.wait.result }}"}
""")


# -- durable functions -----------------------------------------------------------------------------------------------------


async def _caught(awaited: Any) -> Any:
    try:
        return await awaited
    except Exception as error:
        return [
            type(error).__name__,
            str(error),
            getattr(error, "status", None),
            getattr(error, "type", None),
        ]


def _fail() -> None:
    raise Declined("step")


@action(pack="kit")
async def steps(ctx: DurableContext) -> list[Any]:
    first = await ctx.step("a", lambda: (1, Pair(1, (2,))))
    await ctx.sleep(0.1)
    return [first, await _caught(ctx.step("b", _fail)), await _caught(ctx.step("c", lambda: {1, 2}))]


@action(pack="kit")
async def large_step(ctx: DurableContext) -> Any:
    return await _caught(ctx.step("a", lambda: "x" * LARGE))


@action(pack="kit")
async def first_of(ctx: DurableContext) -> Any:
    earliest = await ctx.first(s=ctx.signal("never"), t=ctx.sleep(0.1))
    return [earliest.name, earliest.value]


@action(pack="kit")
async def maps(ctx: DurableContext, items: list[Any], concurrency: int | None = None) -> Any:
    return await _caught(ctx.map("kit.odd", items, concurrency=concurrency))


@action(pack="kit")
async def maps_workflow(ctx: DurableContext) -> Any:
    return [await ctx.map(fans_out, [{}, {}]), await _caught(ctx.map(fails_beside, [{}]))]


@action(pack="kit")
async def runs(ctx: DurableContext, target: str, parameters: Any) -> Any:
    return await _caught(ctx.run(target, parameters))


@action(pack="kit")
async def waits_for_signal(ctx: DurableContext, timeout: float | None = None) -> Any:
    return await _caught(ctx.signal("go", timeout=timeout))


@action(pack="kit")
async def asks(ctx: DurableContext, timeout: float | None = None) -> Any:
    return await _caught(ctx.ask("Sure?", schema={"type": "boolean"}, timeout=timeout))


@action(pack="kit")
async def waits_in_function(ctx: DurableContext, when: str | None = None) -> Any:
    return await _caught(ctx.wait_for("kit.noted", when=when, timeout=0.3))


@action(pack="kit")
async def limited_block(ctx: DurableContext) -> Any:
    async def block() -> None:
        async with ctx.timeout(0.2):
            await ctx.sleep(60)

    return await _caught(block())


@action(pack="kit")
async def compensates(ctx: DurableContext) -> None:
    ctx.on_failure(lambda: None)
    await ctx.sleep(0.05)
    raise NonRetryable("end")


# -- requests and outcomes from outside ------------------------------------------------------------------------------------


@action(pack="kit")
async def runs_from_inside(target: str, parameters: Any) -> Any:
    return await _caught(current().run(target, parameters))


@action(pack="kit")
async def publishes(payload: Any) -> Any:
    return await _caught(current().publish("kit.published", payload, key="same"))


@action(pack="kit")
async def publishes_twice() -> Any:
    await current().publish("kit.published", {"n": 0}, key="twice")
    return await _caught(current().publish("kit.published", {"n": 1}, key="twice"))


@action(pack="kit")
async def hands_over(
    timeout: float | None = None, heartbeat: float | None = None, id: str | None = None
) -> Any:
    return later(id, timeout=timeout, heartbeat=heartbeat)


@action(pack="kit", retry=FAST)
async def hands_over_again(id: str | None = None) -> Any:
    return later(id, timeout=60)


async def _no_report(execution: uuid.UUID, attempt: int, body: dict[str, Any]) -> None:
    raise AssertionError("the test has to replace this function")


report_early: Callable[[uuid.UUID, int, dict[str, Any]], Awaitable[None]] = _no_report
"""The function with which an action reports about its own attempt, as the system outside does."""


@action(pack="kit", retry=FAST)
async def is_reported_early(body: dict[str, Any]) -> Any:
    if current().attempt > 1:
        return "the second attempt"
    await report_early(current().execution_id, current().attempt, body)
    return later(timeout=0.3)


# -- events ------------------------------------------------------------------------------------------------------------------

noted = Trigger("kit.noted")
published = Trigger("kit.published", schema={"n": {"type": "integer", "required": True}, "why": "string"})
Rule("kit.on_any", trigger=published, action=echo)
Rule(
    "kit.on_go",
    trigger=published,
    when="payload.n > 5 and payload.why == 'go'",
    action=echo,
    params={"x": "{{ payload.n * 2 }}"},
)
Rule("kit.on_missing", trigger=published, when="payload.zzz", action=echo, params={"x": "missing"})
Rule("kit.on_seven", trigger=published, when="payload.n == 7", action=odd, params={"x": "{{ payload.n }}"})
Rule(
    "kit.on_eight",
    trigger=published,
    when="payload.n == 8",
    action=odd,
    params={"x": "{{ [payload.why][0] }}"},
)
Rule(
    "kit.on_nine",
    trigger=published,
    when="payload.n == 9",
    action=echo,
    params={"x": "{{ payload.why.nope }}"},
)
Rule("kit.on_ten", trigger=published, when="payload.n == 10", action=echo, params={"x": "{{ 'x' * 300000 }}"})

EVENTS: tuple[Any, ...] = (
    {"n": 6, "why": "go"},
    {"n": 7, "why": "go", "zzz": True},
    {"n": 7, "why": "stop", "zzz": False},
    {"n": 8, "why": "text", "zzz": False},
    {"n": 9, "why": "text", "zzz": False},
    {"n": 10, "why": "", "zzz": False},
    {"n": 1},
    {"n": "x"},
    {"n": 1, "why": "x" * LARGE},
    None,
)


@dataclass(frozen=True)
class Program:
    """A program. `reports` are what operators and other systems do once it waits: a name, and the arguments. `early` are the
    reports before its start."""

    name: str
    target: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    reports: tuple[tuple[Any, ...], ...] = ()
    early: tuple[tuple[Any, ...], ...] = ()


def _programs() -> tuple[Program, ...]:
    plain: list[Any] = [
        echo,
        bad,
        third_time,
        always_declined,
        retried_subclass,
        excluded_subclass,
        mixed_group,
        not_retried,
    ]
    plain += [
        asks_for_retry,
        out_of_time,
        cancels_itself,
        exits,
        long_message,
        defers,
        in_thread,
        batched_short,
    ]
    plain += [
        fails_beside,
        handles,
        fans_out,
        fans_out_badly,
        fans_out_tolerantly,
        exits_after_failure,
        fails_on_exit,
    ]
    plain += [
        reads_missing_field,
        refused_input,
        default_answer,
        no_answer,
        allows_failure,
        out_of_time_waiting,
    ]
    plain += [
        nested_failure,
        large_output,
        waits_for_event,
        steps,
        large_step,
        first_of,
        maps_workflow,
        limited_block,
    ]
    plain += [compensates, publishes_twice]
    programs = [Program(target.ref, target) for target in plain]
    for name in (
        "tuple", "set", "instant", "decimal", "id", "enum", "dataclass", "nan", "infinity", "huge integer", "integer key",
        "bytes", "nul", "surrogate", "deep", "large", "members",
    ):  # fmt: skip
        programs += [Program(f"gives {name}", gives, {"name": name})]
    for parameters in (
        {"a": "5"}, {"a": 5.0}, {"a": 5.5}, {"a": True}, {"b": "1"}, {"c": 5}, {"d": "z"}, {"e": [1, "2"]}, {"f": "junk"},
        {"f": "2026-01-01T00:00:00Z"}, {"g": 1}, {"nope": 1}, {"a": None}, {"a": 2**53 + 1}, {"c": "x" * LARGE},
    ):  # fmt: skip
        programs += [Program(f"typed {parameters!s:.30}", typed, parameters)]
    programs += [
        Program("more parameters", open_ended, {"a": 1, "z": 2}),
        Program("template as text", echo, {"x": "{{ 1 + 1 }}"}),
        Program("state that is not JSON", defers_with),
        Program("large state", defers_with, {"size": LARGE}),
        Program("item of a batch", batched, {"first": 2}),
        Program("failed item of a batch", batched, {"first": 1}),
        Program("refused item of a batch", batched, {"first": "no"}),
        Program("too few outcomes of a batch", batched_short, {"first": 1}),
        Program("map", maps, {"items": [{"x": 2}, {"x": 4}]}),
        Program("map in turn", maps, {"items": [{"x": 2}, {"x": 4}, {"x": 6}], "concurrency": 1}),
        Program("map of nothing", maps, {"items": []}),
        Program("map that fails", maps, {"items": [{"x": 2}, {"x": 3}]}),
        Program("map that is refused", maps, {"items": [{"x": 2}, {"x": "no"}, {}]}),
        Program("map over numbers", maps, {"items": [1]}),
        Program("run", runs, {"target": "kit.odd", "parameters": {"x": 4}}),
        Program("run that fails", runs, {"target": "kit.bad", "parameters": {"x": 4}}),
        Program("run of a workflow that fails", runs, {"target": "kit.fails_beside", "parameters": {}}),
        Program("run that is refused", runs, {"target": "kit.odd", "parameters": {"x": "no"}}),
        Program("run with a large parameter", runs, {"target": "kit.gives", "parameters": {"name": "large"}}),
        Program("signal", waits_for_signal, {}, (("signal", "go", {"a": 1}),)),
        Program("no signal", waits_for_signal, {"timeout": 0.2}),
        Program("cancelled function", waits_for_signal, {}, (("cancel",),)),
        Program("answer", asks, {}, (("answer", "asks.ask", True),)),
        Program("refused answer", asks, {}, (("answer", "asks.ask", 5), ("answer", "asks.ask", False))),
        Program("no answer to a function", asks, {"timeout": 0.2}),
        Program("no event", waits_in_function),
        Program("condition with an unknown name", waits_in_function, {"when": "other == 1"}),
        Program("answer to a workflow", answered, {}, (("answer", "q", True),)),
        Program("cancelled workflow", answered, {}, (("cancel",),)),
        Program("skipped task", answered, {}, (("command", "skip", "q", None),)),
        Program("result by hand", asks_freely, {}, (("command", "set_result", "q", {"b": 1, "a": -0.0}),)),
        Program("refused result by hand", answered, {}, (("command", "set_result", "q", 5), ("cancel",))),
        Program("unknown command", answered, {}, (("command", "stop", "q", None), ("cancel",))),
        Program(
            "paused workflow",
            answered,
            {},
            (("command", "pause", None, None), ("command", "resume", None, None), ("answer", "q", True)),
        ),
        Program("run from inside", runs_from_inside, {"target": "kit.odd", "parameters": {"x": 4}}),
        Program("run from inside that fails", runs_from_inside, {"target": "kit.odd", "parameters": {"x": 5}}),
        Program("run from inside that is refused", runs_from_inside, {"target": "kit.odd", "parameters": {"x": "no"}}),
        Program("publish that is refused", publishes, {"payload": {"n": "no"}}),
        Program("no outcome from outside", hands_over, {"timeout": 0.2}),
        Program("no heartbeat", hands_over, {"timeout": 5, "heartbeat": 0.3}),
        Program("outcome before the heartbeat", hands_over, {"timeout": 0.3, "heartbeat": 5}),
        Program("outcome from outside", hands_over, {"timeout": 60}, (("result", {"b": 1, "aa": 2}),)),
        Program("error from outside", hands_over, {"timeout": 60}, (("error", "it broke"),)),
        Program("cancelled wait for outside", hands_over, {"timeout": 60}, (("cancel",),)),
        Program("refused outcomes", hands_over, {"timeout": 60}, (
            ("result", "x" * LARGE), ("error", {"text": "no"}), ("result", 1))),
        Program("late outcome", hands_over, {"timeout": 60}, (("result", 1), ("late result", 2))),
        Program("outcome of nothing", echo, {}, (("late result", 2),)),
        Program("result by its id", hands_over, {"id": "kit:1"}, (("named result", "kit:1", {"bb": 1, "a": 2}),)),
        Program("error by its id", hands_over, {"id": "kit:2"}, (("named error", "kit:2", "it broke"),)),
        Program("retried error by its id", hands_over_again, {"id": "kit:3"}, (
            ("named error", "kit:3", "it broke"), ("named error", "kit:3", {"type": "T", "message": "no", "retryable": False}))),
        Program("retried errors by its id", hands_over_again, {"id": "kit:4"}, (("named error", "kit:4", "it broke"),) * 3),
        Program("refused outcome by its id", hands_over, {"id": "kit:5"}, (
            ("named result", "kit:5", "x" * LARGE), ("named error", "kit:5", 7), ("cancel",))),
        Program("early result by its id", hands_over, {"id": "kit:6"}, (), (
            ("named result", "kit:6", 1), ("named result", "kit:6", 2))),
        Program("early error by its id", hands_over_again, {"id": "kit:7"}, (), (("named error", "kit:7", "it broke"),)),
        Program("refused early result", hands_over, {"id": "kit:8", "timeout": 0.3}, (), (
            ("named result", "kit:8", "x" * LARGE),)),
        Program("progress and result", hands_over, {"timeout": 60, "heartbeat": 60}, (
            ("progress", {"progress": 0.5, "text": "half"}), ("progress", {"heartbeat": True}), ("result", 1))),
        Program("late progress", hands_over, {"timeout": 60}, (("result", 1), ("late progress", {"progress": 0.5}))),
        Program("result of a running action", is_reported_early, {"body": {"result": 1}}),
        Program("error of a running action", is_reported_early, {"body": {"error": "it broke"}}),
        Program("progress of a running action", is_reported_early, {"body": {"progress": 0.5}}),
    ]  # fmt: skip
    return tuple(programs)


PROGRAMS = _programs()

WEBHOOK_SECRET = "c2VjcmV0LW9mLXdlYmhvb2tz"
WEBHOOKS: dict[str, dict[str, Any]] = {
    "plain": {"trigger": "kit.called", "signature": "secret"},
    "header": {"trigger": "kit.called", "signature": "secret", "header": "X-Own", "key_header": "X-Id"},
    "github": {
        "trigger": "kit.called",
        "signature": "github",
        "payload": {"n": "{{ body.n | int }}", "query": "{{ query.ref | default(none) }}"},
        "completes": "{{ 'kit:hook:' ~ body.id if body.id is defined else none }}",
        "fails": "body.ok is defined and not body.ok",
    },
    "stripe": {"trigger": "kit.called", "signature": "stripe"},
    "standard": {"trigger": "kit.called", "signature": "standard", "payload": {"n": "{{ body.missing.n }}"}},
}
"""The webhooks that `CALLS` call. Their trigger is `kit.called`."""
called = Trigger(
    "kit.called",
    schema={"n": {"type": "integer", "required": True}, "id": "string", "query": {}, "pad": "string"},
)
Rule("kit.on_called", trigger=called, action=odd, params={"x": "{{ payload.n * 2 }}"})
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Call:
    """A call of a webhook. `is_signed`: the caller signs it, now."""

    webhook: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    is_signed: bool = True


HOOKED = ("1", "2", "3")
"""The ids for which executions wait, as `kit:hook:1`."""
CALLS = (
    Call("plain", b'{"n": 1}'),
    Call("plain", b'{"n": 1}'),
    Call("plain", b'{"n": 1}', {"x-webhook-secret": "another secret"}),
    Call("plain", b'{"n": 1}', is_signed=False),
    Call("plain", b'{"n": "one"}'),
    Call("plain", b"{no json"),
    Call("plain", b"null"),
    Call("plain", b'{"n": 123456789012345678901234567890}'),
    Call("plain", b'{"n": 1, "pad": "' + b"x" * LARGE + b'"}'),
    Call("plain", b'{"n": 1, "pad": "' + b"x" * 400_000 + b'"}'),
    Call("unknown", b'{"n": 1}', is_signed=False),
    Call("header", b'{"n": 1}'),
    Call("header", b'{"n": 1}', {"x-id": "a"}),
    Call("header", b'{"n": 1}', {"x-id": "a"}),
    Call("header", b'{"n": 2}', {"x-id": "a"}),
    Call("header", b'{"n": 2}', {"x-id": "k" * 5000}),
    Call("github", b'{"n": 1}', query="ref=main&ref=next"),
    Call("github", b'{"n": 1}', query="ref=main&ref=next"),
    Call("github", b"n=7&n=8", FORM),
    Call("github", b"payload=%7B%22n%22%3A+9%7D", FORM),
    Call("github", b"n=caf\xe9", {"content-type": FORM["content-type"] + "; charset=utf-8"}),
    Call("github", b'{"n": 1}', {"x-hub-signature-256": "sha256=00"}),
    Call("github", b'{"n": 3, "id": "1"}'),
    Call("github", b'{"n": 3, "id": "1"}'),
    Call("github", b'{"n": 4, "id": "2", "ok": false}'),
    Call("github", b'{"n": "x", "id": "3"}'),
    Call("github", b'{"n": 5, "id": "unknown"}'),
    Call("stripe", b'{"n": 1, "id": "evt_1"}'),
    Call("stripe", b'{"n": 1, "id": "evt_1"}'),
    Call("stripe", b'{"n": 2, "id": "evt_1"}'),
    Call("stripe", b'{"n": 1}', {"stripe-signature": "t=1,v1=00"}),
    Call("standard", b'{"n": 1}'),
    Call("standard", b'{"n": 1}', {"webhook-timestamp": "1000"}),
)  # fmt: skip
"""The calls, in their order."""
