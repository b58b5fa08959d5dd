"""The cases of the conformance program. A case is a function that raises AssertionError with what was wrong. Its name and its
docstring are what the program prints."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from penstock.operate import workers as operate_workers
from penstock.store.executions import executions
from penstock.testing.worker_conformance.surroundings import SLOTS, Surroundings

Check = Callable[[Surroundings], Awaitable[None]]
CASES: dict[str, Check] = {}
"""All cases by name, in the order in which they are played."""
OF_GATEWAYS: dict[str, str] = {}
"""The cases that a worker with a session with the database cannot play, and the reason."""

BEGUN = {"log": "begun"}
CORDONED_S = 3.0
"""Seconds after which a worker knows that it is cordoned: its heartbeats in the surroundings are two seconds apart."""


def case(check: Check) -> Check:
    """Add a case under the name of its function."""
    CASES[check.__name__] = check
    return check


def case_of_gateways(reason: str) -> Callable[[Check], Check]:
    """Add a case that is only for workers that call a gateway."""

    def add(check: Check) -> Check:
        OF_GATEWAYS[check.__name__] = reason
        return case(check)

    return add


def same(value: Any, expected: Any, label: str) -> None:
    """Raise AssertionError if two values differ."""
    if value != expected:
        raise AssertionError(f"{label}: {_brief(value)} instead of {_brief(expected)}")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)} characters)"


# -- results and parameters ----------------------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "null": None,
    "object": {"a": 1, "b": [True, False, None]},
    "list": [1, "two", [3]],
    "empty_object": {},
    "empty_text": "",
    "unicode": "žluťoučký 🐎 العربية \u2028 \ufeff",
    "control_characters": 'tab\t newline\n quote" backslash\\ \u0001',
    "large_integer": 2**53 - 1,
    "integers_of_64_bits": [2**53 + 1, -(2**63), 2**64 - 1],
    "negative_number": -12.5e-7,
    "zero": 0,
    "false": False,
    "odd_names": {"constructor": 1, "__proto__": 2, "toString": 3, "a b": 4, "": 5},
    "deep": None,
    "large": "x" * 150_000,
    "many_items": list(range(5000)),
}
deep: Any = 1
for _ in range(40):
    deep = [{"d": deep}]
VALUES["deep"] = deep


async def _returns(value: Any, house: Surroundings) -> None:
    same(await house.play({"return": value}), value, "the result")


for _name, _value in VALUES.items():
    CASES[f"result_{_name}"] = partial(_returns, _value)


@case
async def result_too_large(house: Surroundings) -> None:
    """A result over the limit fails its attempt, and the worker goes on."""
    id = await house.start({"large": 400_000})
    execution = await house.until_ended(id)
    same(execution.status, "failed", "the status")
    await _returns("after it", house)


@case
async def run_knows_what_it_is(house: Surroundings) -> None:
    """An action can read its execution, its attempt, its action and its tenant."""
    id = await house.start({"return_run": True}, tenant="acme")
    run_ids = await house.client.result(id, timeout=30)
    expected = {"execution": str(id), "attempt": 1, "action": "conformance.play", "tenant": "acme"}
    same({name: run_ids.get(name) for name in expected}, expected, "the run")


@case
async def tasks_of_a_workflow(house: Surroundings) -> None:
    """Tasks of a workflow get results of earlier ones."""
    id = await house.client.start("conformance.chain", {"n": 4})
    same(await house.client.result(id, timeout=40), {"n": 5}, "the output")


# -- failures, retries, deferrals, timeouts ------------------------------------------------------------------------------


@case
async def failure_is_reported(house: Surroundings) -> None:
    """A failure has its type and its message."""
    execution = await house.until_ended(
        await house.start({"fail": {"type": "Declined", "message": "no 🐎 money", "retryable": False}})
    )
    error = orjson.loads(execution.error or "{}")
    same(
        (execution.status, error["type"], error["message"]),
        ("failed", "Declined", "no 🐎 money"),
        "the failure",
    )


@case
async def failure_without_retry(house: Surroundings) -> None:
    """A failure that says so is not retried."""
    id = await house.start({"fail": {"type": "Final", "message": "", "retryable": False}})
    await house.until_ended(id)
    same(await house.outcomes(id), ["failed"], "the attempts")


@case
async def failure_is_retried(house: Surroundings) -> None:
    """A failure is retried by the policy of its action, until it succeeds."""
    id = await house.start({"fail_until": 3}, {"return": "third"})
    same(await house.client.result(id, timeout=30), "third", "the result")
    same(await house.outcomes(id), ["failed", "failed", "completed"], "the attempts")


@case
async def retries_end(house: Surroundings) -> None:
    """An execution fails when its attempts are used up."""
    id = await house.start({"fail_until": 99})
    same((await house.until_ended(id)).status, "failed", "the status")
    same(await house.outcomes(id), ["failed"] * 3, "the attempts")


@case
async def retry_after_is_obeyed(house: Surroundings) -> None:
    """A failure can say when it is retried."""
    id = await house.start({"fail": {"type": "Later", "message": "", "retry_after": 600}})
    async with asyncio.timeout(20):
        while await house.outcomes(id) != ["failed"]:
            await asyncio.sleep(0.1)
    same(await house.status(id), "requested", "the status")
    await house.client.cancel(id)


@case
async def long_message(house: Surroundings) -> None:
    """An error of 30,000 characters is taken, and shortened."""
    id = await house.start({"fail": {"type": "Long", "message": "m" * 30_000, "retryable": False}})
    same((await house.until_ended(id)).status, "failed", "the status")


@case
async def deferral_carries_state(house: Surroundings) -> None:
    """A deferred attempt runs again, and is given its state."""
    id = await house.start({"defer_once": [0.1, {"page": 7}]}, {"return_state": True})
    same(await house.client.result(id, timeout=30), {"page": 7}, "the state")
    same(await house.outcomes(id), ["deferred", "completed"], "the attempts")


@case
async def deferral_frees_the_slot(house: Surroundings) -> None:
    """A deferred attempt holds no slot."""
    ids = [await house.start({"defer_once": [600, 1]}) for _ in range(2 * SLOTS)]
    await _returns("between", house)
    for id in ids:
        await house.client.cancel(id)


@case
async def time_runs_out(house: Surroundings) -> None:
    """A worker ends an attempt that takes longer than its time, and does not leave that to the executors."""
    id = await house.start({"sleep": 30}, action="conformance.brief")
    execution = await house.until_ended(id, seconds=30)
    same(execution.status, "timeout", "the status")
    actor = (await house.client.history(id))[-1].actor or ""
    same(actor.partition(":")[2], house.worker.name, "the actor that ended it")


# -- output --------------------------------------------------------------------------------------------------------------


@case
async def log_lines_in_order(house: Surroundings) -> None:
    """Lines are stored once, in their order."""
    lines = [f"line {n} 🐎" for n in range(50)]
    id = await house.start(*({"log": line} for line in lines), {"return": 1})
    await house.client.result(id, timeout=30)
    same(await house.lines(id, count=len(lines)), lines, "the lines")


@case
async def log_line_that_is_long(house: Surroundings) -> None:
    """A line of 40,000 characters is shortened or broken."""
    id = await house.start({"log": "y" * 40_000}, {"return": 1})
    await house.client.result(id, timeout=30)
    lines = await house.lines(id, count=1)
    assert lines, "no line was stored"
    assert all(set(line) == {"y"} for line in lines), "other text was stored"


@case
async def progress_is_reported(house: Surroundings) -> None:
    """The progress of a run is stored."""
    id = await house.start({"progress": [0.25, "a quarter"]}, {"progress": [1, ""]}, {"return": 1})
    await house.client.result(id, timeout=30)
    same(await house.lines(id, "progress", count=2), ["0.25 a quarter", "1"], "the reports")


@case
async def secret_is_masked(house: Surroundings) -> None:
    """A secret parameter is in neither the log nor the error."""
    fail = {"fail_with_secret": True}
    id = await house.start({"log_secret": True}, fail, secret="SECRET-1f7c2a")
    execution = await house.until_ended(id)
    lines = await house.lines(id, count=1)
    assert "SECRET-1f7c2a" not in "".join(lines), "the log shows the secret"
    assert "SECRET-1f7c2a" not in (execution.error or ""), "the error shows the secret"
    assert lines, "no line was stored"


# -- cancellation --------------------------------------------------------------------------------------------------------


@case
async def cancelled_before(house: Surroundings) -> None:
    """An execution that was cancelled before it began does not run."""
    id = await house.start(BEGUN, {"return": 1}, delay=600)
    await house.client.cancel(id)
    same((await house.until_ended(id)).status, "cancelled", "the status")
    same(await house.lines(id), [], "the lines")


@case
async def cancelled_in_the_midst(house: Surroundings) -> None:
    """A running attempt ends soon after its cancellation."""
    id = await house.start(BEGUN, {"sleep": 50}, {"return": 1})
    await house.until_running(id)
    await house.client.cancel(id)
    same((await house.until_ended(id, 20)).status, "cancelled", "the status")


@case
async def cancelled_after(house: Surroundings) -> None:
    """A cancellation after the end changes nothing."""
    id = await house.start({"return": 5})
    await house.client.result(id, timeout=30)
    await house.client.cancel(id)
    same(await house.status(id), "completed", "the status")


@case
async def cancelled_and_deaf(house: Surroundings) -> None:
    """An action that ignores its cancellation ends all the same, and the worker goes on."""
    id = await house.start(BEGUN, {"stubborn": 3}, {"return": "done"})
    await house.until_running(id)
    await house.client.cancel(id)
    assert (await house.until_ended(id, 30)).status in ("cancelled", "completed"), "a wrong status"
    await _returns("after it", house)


@case
async def cancelled_between_attempts(house: Surroundings) -> None:
    """An execution that waits for its retry can be cancelled."""
    id = await house.start({"fail": {"type": "Later", "message": "", "retry_after": 600}})
    async with asyncio.timeout(20):
        while await house.outcomes(id) != ["failed"]:
            await asyncio.sleep(0.1)
    await house.client.cancel(id)
    same((await house.until_ended(id)).status, "cancelled", "the status")


@case
async def one_of_many_is_cancelled(house: Surroundings) -> None:
    """A cancellation ends only what it names."""
    ids = [await house.start(BEGUN, {"sleep": 2}, {"return": n}) for n in range(SLOTS)]
    for id in ids:
        await house.until_running(id)
    await house.client.cancel(ids[1])
    statuses = [(await house.until_ended(id)).status for id in ids]
    same(Counter(statuses), Counter(completed=SLOTS - 1, cancelled=1), "the statuses")


# -- slots and batches ---------------------------------------------------------------------------------------------------


@case
async def no_more_than_its_slots(house: Surroundings) -> None:
    """A worker never holds more attempts than it has slots."""
    ids = [await house.start({"sleep": 1.0}, {"return": n}) for n in range(4 * SLOTS)]
    counts, statuses = [0], {"running"}
    async with asyncio.timeout(60):
        while statuses - {"completed"}:
            rows = await executions.find(house.session, ids)
            statuses = {row.status for row in rows}
            counts.append([row.status for row in rows].count("running"))
            await asyncio.sleep(0.05)
    # While ends are stored with a take, their attempts and those that follow them may both count for a moment.
    largest = max(min(counts[look : look + 3]) for look in range(len(counts) - 2))
    assert 0 < largest <= SLOTS, f"it held {largest} attempts, with {SLOTS} slots"


@case
async def many_at_once(house: Surroundings) -> None:
    """Two hundred executions complete, each once."""
    ids = [await house.start({"return": n}) for n in range(200)]
    results = [await house.client.result(id, timeout=60) for id in ids]
    same(results, list(range(200)), "the results")
    for id in (ids[0], ids[99], ids[199]):
        same(await house.outcomes(id), ["completed"], "the attempts")


@case
async def idle_slots_are_used(house: Surroundings) -> None:
    """Work comes in while other attempts run."""
    slow = await house.start(BEGUN, {"sleep": 5}, {"return": "slow"})
    await house.until_running(slow)
    same([await house.play({"return": n}) for n in range(5)], list(range(5)), "the results")
    same(await house.status(slow), "running", "the status of the slow one")
    await house.client.result(slow, timeout=30)


# -- lost, late and repeated messages ------------------------------------------------------------------------------------


async def _survives(call: str, kind: str, count: int, house: Surroundings) -> None:
    fault = house.proxy.plant(call, kind, count)
    ids = [await house.start(BEGUN, {"sleep": 0.1}, {"return": n}) for n in range(6)]
    same([await house.client.result(id, timeout=60) for id in ids], list(range(6)), "the results")
    for id in ids:
        same(await house.outcomes(id), ["completed"], "the attempts")
        same(await house.lines(id), ["begun"], "the lines")
    async with asyncio.timeout(40):
        while (
            fault.hits == 0
        ):  # a heartbeat may not have been due: a worker without attempts need not send any
            await house.play({"sleep": 1.0})


for _call in ("take", "finish", "log", "beat"):
    for _kind in ("lose_request", "lose_answer", "twice", "busy", "slow"):
        if (_call, _kind) != (
            "take",
            "twice",
        ):  # the first of both answers is lost with what it took: see below
            CASES[f"{_call}_{_kind}"] = partial(_survives, _call, _kind, 2)
            OF_GATEWAYS[f"{_call}_{_kind}"] = f"it has a fault in the HTTP call `{_call}`"


@case_of_gateways("it is about the HTTP call `take`")
async def take_again_is_the_same_request(house: Surroundings) -> None:
    """A take without an answer is sent again with the same request id, and says so."""
    earlier = len(house.proxy.of("take"))
    fault = house.proxy.plant("take", "lose_answer")
    while not fault.hits:  # a take that waits already is not hit
        same(await house.play({"return": 1}), 1, "the result")
        await asyncio.sleep(0.2)
    same(await house.play({"return": 2}), 2, "the result")
    sent = house.proxy.of("take")[earlier:]
    unanswered = [x.message["request"] for x in sent if x.status == 0]
    again = [x.message["request"] for x in sent if x.message.get("again")]
    assert unanswered, "no take was lost"
    assert set(unanswered) <= set(again), f"lost were {unanswered}, and {again} were sent again"


@case_of_gateways("it is about the HTTP call `take`")
async def request_ids_are_unique(house: Surroundings) -> None:
    """Every take has a request id of its own, unless it is sent again."""
    for _ in range(5):
        await house.play({"return": 1})
    ids = [x.message["request"] for x in house.proxy.of("take") if not x.message.get("again")]
    assert len(ids) == len(set(ids)) > 1, "two takes have one request id"
    assert all(UUID(id) for id in ids)


@case_of_gateways("it holds the HTTP call `finish`")
async def stale_end_is_dropped(house: Surroundings) -> None:
    """A worker that is told that a claim is lost drops the attempt, and goes on."""
    held = house.proxy.plant("finish", "hold")
    id = await house.start(BEGUN, {"return": "held"})
    await house.until_running(id)
    async with asyncio.timeout(20):
        while not held.hits:
            await asyncio.sleep(0.05)
    await house.client.cancel(id)
    held.released.set()
    assert (await house.until_ended(id, 30)).status in ("cancelled", "completed"), "a wrong status"
    await _returns("after it", house)


@case_of_gateways("it is about HTTP answers")
async def answers_with_unknown_fields(house: Surroundings) -> None:
    """A later version of the protocol may add fields to all answers."""

    def grown(answer: dict[str, Any]) -> dict[str, Any]:
        attempts = [{**attempt, "x_new": [1]} for attempt in answer.get("attempts", ())]
        return {**answer, **({"attempts": attempts} if attempts else {}), "x_new": {"deep": True}}

    house.proxy.changed = grown
    await _returns("with unknown fields", house)


@case_of_gateways("it is about a header of HTTP answers")
async def clocks_that_disagree(house: Surroundings) -> None:
    """The clock of the gateways may be off by years."""
    house.proxy.headers.append(("date", "Thu, 01 Jan 1970 00:00:00 GMT"))
    await _returns("in 1970", house)
    house.proxy.headers[:] = [("date", "Fri, 01 Jan 2100 00:00:00 GMT")]
    await _returns("in 2100", house)


@case_of_gateways("it is about the token")
async def calls_are_authenticated(house: Surroundings) -> None:
    """The token and the session are in headers of each call, and in no address."""
    await _returns(1, house)
    for exchange in house.proxy.exchanges[-20:]:
        same(exchange.headers.get("authorization"), f"Bearer {house.token}", "the header Authorization")
        if exchange.call != "hello":
            assert exchange.headers.get("penstock-session", "").startswith("psw_"), "a call without a session"
        assert not {"psw_", "pst_"} & {exchange.target[i : i + 4] for i in range(len(exchange.target))}, (
            "a secret in an address"
        )


@case_of_gateways("it is about the HTTP call `hello`")
async def hello_names_language_and_sdk(house: Surroundings) -> None:
    """The first message says which language and library this is, and the slots that were asked for."""
    hello = house.proxy.of("hello")[0].message
    assert hello.get("language"), "no language"
    assert hello.get("sdk"), "no sdk"
    same(hello.get("slots"), SLOTS, "the slots")


@case
async def network_is_away_for_a_moment(house: Surroundings) -> None:
    """A short outage costs no attempt."""
    id = await house.start(BEGUN, {"sleep": 3}, {"return": "through"})
    await house.until_running(id)
    house.network.cut()
    await asyncio.sleep(1.0)
    house.network.mend()
    same(await house.client.result(id, timeout=40), "through", "the result")
    same(await house.outcomes(id), ["completed"], "the attempts")


@case
async def network_is_away_for_long(house: Surroundings) -> None:
    """After a long outage the worker has given its attempts up, and begins another session."""
    id = await house.start(BEGUN, {"sleep_first": 20}, {"return_attempt": True})
    await house.until_running(id)
    hellos = len(house.proxy.of("hello"))
    house.network.cut()
    async with asyncio.timeout(40):
        while await house.outcomes(id) in ([], ["running"]):
            await asyncio.sleep(0.1)
    house.network.mend()
    same(await house.client.result(id, timeout=60), 2, "the attempt that returned")
    same(await house.outcomes(id), ["lost", "completed"], "the attempts")
    assert house.is_direct or len(house.proxy.of("hello")) > hellos, "it began no other session"


@case_of_gateways("it is about the HTTP call `hello`")
async def hello_without_an_answer(house: Surroundings) -> None:
    """A hello without an answer is sent again."""
    house.proxy.plant("hello", "lose_answer")
    house.proxy.plant("hello", "busy")
    await house.start_worker()
    await _returns("after hello", house)


# -- gateways that die ---------------------------------------------------------------------------------------------------


@case_of_gateways("it is about gateways")
async def gateway_is_killed_in_the_midst(house: Surroundings) -> None:
    """A gateway that is killed costs no attempt: the worker goes on with another."""
    ids = [await house.start(BEGUN, {"sleep": 2}, {"return": n}) for n in range(SLOTS)]
    for id in ids:
        await house.until_running(id)
    port = house.ports[0]
    await house.gateways.kill(port)
    try:
        same([await house.client.result(id, timeout=60) for id in ids], list(range(SLOTS)), "the results")
        for id in ids:
            same(await house.outcomes(id), ["completed"], "the attempts")
        await _returns("with one gateway", house)
    finally:
        await house.gateways.start(port)


@case_of_gateways("it is about gateways")
async def all_gateways_are_killed(house: Surroundings) -> None:
    """While no gateway answers a worker waits, and then goes on."""
    for port in house.ports:
        await house.gateways.kill(port)
    id = await house.start({"return": "back"})
    await asyncio.gather(*(house.gateways.start(port) for port in house.ports))
    same(await house.client.result(id, timeout=60), "back", "the result")


@case
async def session_is_over(house: Surroundings) -> None:
    """A worker says hello again when its session is unknown."""
    hellos = len(house.proxy.of("hello"))
    # An open take would keep a worker without attempts alive.
    id = await house.start(BEGUN, {"sleep_first": 60}, {"return_attempt": True})
    await house.until_running(id)
    house.worker.freeze()
    async with asyncio.timeout(60):
        while await house.outcomes(id) == ["running"]:
            await asyncio.sleep(0.2)
    house.worker.thaw()
    same(await house.client.result(id, timeout=60), 2, "the attempt that returned")
    assert house.is_direct or len(house.proxy.of("hello")) > hellos, "it began no other session"


# -- workers that die ----------------------------------------------------------------------------------------------------


@case
async def worker_is_killed(house: Surroundings) -> None:
    """The attempts of a killed worker run again elsewhere."""
    id = await house.start(BEGUN, {"sleep_first": 30}, {"return_attempt": True})
    await house.until_running(id)
    await house.worker.kill()
    await house.start_worker()
    same(await house.client.result(id, timeout=60), 2, "the attempt that returned")
    same(await house.outcomes(id), ["lost", "completed"], "the attempts")


@case
async def worker_is_killed_with_work_that_runs_once(house: Surroundings) -> None:
    """An attempt that must not run twice fails with its worker."""
    id = await house.start(BEGUN, {"sleep": 30}, action="conformance.once")
    await house.until_running(id)
    await house.worker.kill()
    await house.start_worker()
    same((await house.until_ended(id, 60)).status, "failed", "the status")
    same(await house.outcomes(id), ["lost"], "the attempts")


@case
async def worker_crashes(house: Surroundings) -> None:
    """An attempt is lost if its action ends the process of the worker. The next worker runs the next attempt."""
    id = await house.start({"crash_first": True}, {"return_attempt": True})
    # A line of the attempt would not do as a sign of its start: a worker that sends lines in batches loses it with the process.
    assert await house.worker.exit_code(40) is not None, "the worker still runs"
    await house.start_worker()
    same(await house.client.result(id, timeout=60), 2, "the attempt that returned")


@case
async def worker_is_frozen_for_a_moment(house: Surroundings) -> None:
    """A pause shorter than the patience of the installation costs no attempt."""
    id = await house.start(BEGUN, {"sleep": 1.5}, {"return": "thawed"})
    await house.until_running(id)
    house.worker.freeze()
    await asyncio.sleep(1.0)
    house.worker.thaw()
    same(await house.client.result(id, timeout=30), "thawed", "the result")
    same(await house.outcomes(id), ["completed"], "the attempts")


@case
async def worker_is_frozen_for_long(house: Surroundings) -> None:
    """A late result of a frozen worker changes nothing, and the worker takes work again."""
    frozen = house.worker
    id = await house.start(BEGUN, {"stubborn_first": 2}, {"return_attempt": True})
    await house.until_running(id)
    frozen.freeze()
    heir = await house.start_worker()
    same(await house.client.result(id, timeout=60), 2, "the attempt that returned")
    frozen.thaw()
    await asyncio.sleep(4.0)  # what it returns late is refused meanwhile
    same(await house.outcomes(id), ["lost", "completed"], "the attempts")
    assert frozen.is_running, "the thawed worker has ended"
    await house.end(heir)
    await _returns("by the thawed worker", house)


# -- draining ------------------------------------------------------------------------------------------------------------


@case
async def drain_lets_work_end(house: Surroundings) -> None:
    """A worker that is asked to stop ends what it runs, says bye, and exits with 0."""
    id = await house.start(BEGUN, {"sleep": 1}, {"return": "ended"})
    await house.until_running(id)
    byes = len(house.proxy.of("bye"))
    same(await house.worker.terminate(20), 0, "the exit code")
    same(await house.client.result(id, timeout=20), "ended", "the result")
    if house.is_direct:
        assert not await house.is_registered(house.worker.name), "its registration is left"
    else:
        same(len(house.proxy.of("bye")) - byes, 1, "the number of byes")
    await house.start_worker()


@case
async def drain_hands_back_what_takes_longer(house: Surroundings) -> None:
    """An attempt that has not ended within the grace period goes to another worker, and is not a failure."""
    id = await house.start(BEGUN, {"stubborn_first": 20}, {"return_attempt": True})
    await house.until_running(id)
    same(await house.worker.terminate(20), 0, "the exit code")
    await house.start_worker()
    same(await house.client.result(id, timeout=30), 2, "the attempt that returned")
    same(await house.outcomes(id), ["handed_back", "completed"], "the attempts")


@case
async def draining_worker_takes_nothing(house: Surroundings) -> None:
    """A worker that is asked to stop takes no more work."""
    id = await house.start(BEGUN, {"sleep": 1.5}, {"return": 1})
    await house.until_running(id)
    ending = asyncio.create_task(house.worker.terminate(20))
    await asyncio.sleep(0.5)
    later = await house.start({"return": 2})
    same(await ending, 0, "the exit code")
    assert await house.status(later) in ("scheduled", "requested"), "it took work"
    await house.start_worker()
    same(await house.client.result(later, timeout=30), 2, "the result")


@case
async def idle_worker_stops_at_once(house: Surroundings) -> None:
    """A worker without attempts stops within seconds."""
    same(await house.worker.terminate(15), 0, "the exit code")
    await house.start_worker()


@case
async def cordoned_worker_takes_nothing(house: Surroundings) -> None:
    """An operator can keep a worker from work, and let it work again."""
    name = house.worker.name
    await operate_workers.cordon(house.session, [name])
    await asyncio.sleep(CORDONED_S)
    id = await house.start({"return": 1})
    await asyncio.sleep(2.0)
    assert await house.status(id) in ("scheduled", "requested"), "a cordoned worker took work"
    await operate_workers.uncordon(house.session, [name])
    same(await house.client.result(id, timeout=40), 1, "the result")
