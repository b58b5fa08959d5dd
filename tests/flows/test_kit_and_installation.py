"""The programs of `kit_programs` in a simulation and in an installation: results, errors and texts are the same."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import httpx
import orjson
import pytest

from penstock.errors import ExecutionFailed, PenstockError
from penstock.language.definitions.action import Action
from penstock.operate import outside, webhooks
from penstock.operate.outside import Report
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Transaction
from penstock.testing import Simulation
from penstock.testing.simulated_run import SimulatedRun
from tests.flows import kit_programs
from tests.flows.installation import Installation
from tests.flows.kit_programs import CALLS, EVENTS, HOOKED, PROGRAMS, WEBHOOK_SECRET, WEBHOOKS, Call, Program
from tests.flows.test_from_outside import api
from tests.penstock.operate.keys import KEY
from tests.penstock_api.webhooks.test_webhook_calls import KINDS

pytestmark = pytest.mark.either_transport

DURABLE = frozenset(
    definition.ref
    for definition in vars(kit_programs).values()
    if isinstance(definition, Action) and definition.durable
)

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
WAITING = "select id from execution where (id = $1 or parent = $1) and status = 'waiting'"
INQUIRY = WAITING + " and exists (select from inquiry where execution_id = id)"
REPORTS = frozenset(
    {"result", "error", "late result", "named result", "named error", "progress", "late progress"}
)
"""The reports of other systems. A late one comes after the end, and a named one by the id of the wait."""
ENDED = "select 1 from execution where id = $1 and finished_at is not null union all select 1 from archive where id = $1"


def _plain(value: Any) -> Any:
    """Return a value without what differs between any two runs: ids, and the lines of tracebacks."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if key != "traceback"}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return ID.sub("<id>", value) if isinstance(value, str) else value


def _refusal(error: PenstockError) -> Any:
    return _plain(["refused", type(error).__name__, error.message, error.hint])


def _simulated(program: Program) -> Any:
    simulation = Simulation(kit_programs)
    refusals: list[Any] = []

    async def report_early(execution: UUID, attempt: int, body: dict[str, Any]) -> None:
        simulation.call_back(_address(simulation, execution, attempt), body)

    kit_programs.report_early = report_early
    for report in program.early:
        with _collected(refusals):
            _report(simulation, None, *report)
    try:
        run = simulation.start(program.target, program.parameters)
    except PenstockError as error:
        return _refusal(error)
    for kind, *arguments in program.reports:
        if "late" in kind:
            run.finish()
        with _collected(refusals):
            if kind in REPORTS:
                _report(simulation, run, kind, *arguments)
            else:
                getattr(run, kind)(*arguments, **({"by": "ada"} if kind == "answer" else {}))
        if kind == "named error":
            simulation.advance(0.1)  # for the retry
    run.finish()
    end = [run.status, run.result if run.status == "completed" else None, run.error, refusals]
    return _plain([*end, run.tasks, _simulated_attempts(run)])


def _simulated_attempts(run: SimulatedRun) -> list[Any]:
    """Return the number, the end and the error of each attempt of an action. Those of a durable function are more in an
    installation, which counts an attempt after each wait, and a workflow has none."""
    if run.tasks or run.ref in DURABLE:
        return []
    own = [step for step in run.steps if step.action == run.ref]
    return [[step.attempt, step.status, (step.error or {}).get("type")] for step in own]


@contextmanager
def _collected(refusals: list[Any]) -> Iterator[None]:
    try:
        yield
    except PenstockError as error:
        refusals.append(_refusal(error))


def _report(simulation: Simulation, run: SimulatedRun | None, kind: str, *arguments: Any) -> None:
    if kind == "named result":
        simulation.complete(arguments[0], result=arguments[1])
    elif kind == "named error":
        simulation.fail(*arguments)
    elif run is not None and "progress" in kind:
        simulation.call_back(_address(simulation, run.id, 1), arguments[0])
    elif run is not None and kind == "error":
        simulation.fail(run.id, arguments[0])
    elif run is not None:
        simulation.complete(run.id, result=arguments[0])


def _address(simulation: Simulation, id: UUID, attempt: int) -> str:
    return simulation._effects.callback_address(simulation._effects.execution(id), attempt)


async def _installed(house: Installation, program: Program) -> Any:
    refusals: list[Any] = []
    for report in program.early:
        with _collected(refusals):
            await _settle_named(house, *report)
    try:
        id = await house.client.start(program.target, program.parameters)
    except PenstockError as error:
        return _refusal(error)
    for report in program.reports:
        with _collected(refusals):
            await _play(house, id, *report)
    with suppress(ExecutionFailed, TimeoutError):
        await house.client.result(id, timeout=20)
    row = await house.client.get(id)
    result = orjson.loads(row.result or "null") if row.status == "completed" else None
    document = await house.client.described(id)
    tasks = {task.name: task.status for task in document["tasks"]}
    attempts = [
        [attempt["attempt"], attempt["outcome"], (attempt["error"] or {}).get("type")]
        for attempt in document["attempts"]
        if not tasks and not document["durable"]
    ]
    return _plain([row.status, result, orjson.loads(row.error or "null"), refusals, tasks, attempts])


async def _play(house: Installation, id: UUID, kind: str, *arguments: Any) -> None:
    client = house.client
    if kind == "signal":
        await client.signal(id, *arguments)
    elif kind == "answer":
        [inquiry] = await house.until(INQUIRY, id)
        await client.answer(inquiry["id"], arguments[1], by="ada")
    elif kind == "cancel":
        await house.until(WAITING, id)
        await client.cancel(id, reason="asked by the test")
    elif kind == "command":
        name, task, value = arguments
        if name != "resume":
            await house.until(WAITING, id)
        await client.command(id, name, task=task, value=value, by="ada")
    elif kind in REPORTS:
        await house.until(ENDED if "late" in kind else WAITING, id)
        if "named" in kind:
            await _settle_named(house, kind, *arguments)
        elif "progress" in kind:
            await outside.progress(house.session, id, 1, Report.of(arguments[0]))
        else:
            await _settle(
                house, lambda tx: outside.complete(tx, id, Report(_kind(kind), arguments[0]), "ada")
            )


def _kind(report: str) -> Any:
    return report.rpartition(" ")[2]


async def _settle_named(house: Installation, kind: str, name: str, value: Any) -> None:
    outcome = Report(_kind(kind), value)
    await _settle(
        house, lambda tx: outside.report_by_id(tx, tx.settings.payload_cap, "public", name, outcome, "ada")
    )


async def _settle(house: Installation, effect: Callable[[Transaction], Awaitable[Any]]) -> None:
    tx, _ = await committed_once(house.session, effect)
    house.client.publish_staged(tx)


async def test_programs_end_alike(house: Installation) -> None:
    await house.start(*_definitions())
    simulated = {program.name: await asyncio.to_thread(_simulated, program) for program in PROGRAMS}
    assert len(simulated) == len(PROGRAMS) >= 60

    async def report_early(execution: UUID, attempt: int, body: dict[str, Any]) -> None:
        report = Report.of(body)
        if report.kind == "progress":
            await outside.progress(house.session, execution, attempt, report)
        else:
            cap = house.session.settings.payload_cap
            await _settle(house, lambda tx: outside.report(tx, cap, execution, attempt, report))

    kit_programs.report_early = report_early
    ends = await asyncio.gather(*(_installed(house, program) for program in PROGRAMS))
    differences = {
        program.name: {"simulation": simulated[program.name], "installation": end}
        for program, end in zip(PROGRAMS, ends, strict=True)
        if simulated[program.name] != end
    }
    assert len(differences) == 0, "\n".join(f"{name}\n{_shown(ends)}" for name, ends in differences.items())


def _shown(ends: dict[str, Any]) -> str:
    return "\n".join(f"  {place}: {end!s:.700}" for place, end in ends.items())


async def test_events_start_alike(house: Installation) -> None:
    await house.start(*_definitions())
    for payload in EVENTS:
        assert _simulated_event(payload) == await _installed_event(house, payload), str(payload)[:80]


def _simulated_event(payload: Any) -> Any:
    simulation = Simulation(kit_programs)
    try:
        started = simulation.publish("kit.published", payload)
    except PenstockError as error:
        return _refusal(error)
    ends = [[run.ref, run.status, run.result if run.status == "completed" else None] for run in started]
    return _plain(
        [sorted(ends, key=str), sorted([failure.rule, failure.error] for failure in simulation.rule_failures)]
    )


async def _installed_event(house: Installation, payload: Any) -> Any:
    try:
        id = await house.client.publish("kit.published", payload)
    except PenstockError as error:
        return _refusal(error)
    await house.until("select 1 from enforcement where event_id = $1 and rule = 'kit.on_any'", id)
    await house.quiet()
    rows = await house.rows(
        "select n.rule, n.error, d.ref, e.status, r.result::text as result from enforcement n "
        "left join execution e on e.id = n.execution_id left join definition d on d.id = e.definition_id "
        "left join result r on r.execution_id = e.id where n.event_id = $1",
        id,
    )
    ends = [
        [row["ref"], row["status"], orjson.loads(row["result"]) if row["status"] == "completed" else None]
        for row in rows
        if row["error"] is None
    ]
    return _plain(
        [
            sorted(ends, key=str),
            sorted([row["rule"], row["error"]] for row in rows if row["error"] is not None),
        ]
    )


async def test_webhooks_answer_alike(make_house: Any) -> None:
    simulated = await asyncio.to_thread(_simulated_calls)
    async with make_house(secrets_key=KEY) as house:
        await house.start(*_definitions())
        for name, options in WEBHOOKS.items():
            await webhooks.put(house.session, name, secret=WEBHOOK_SECRET, by="ada", **options)
        waiting = [
            await house.client.start("kit.hands_over", {"id": f"kit:hook:{id}", "timeout": 60})
            for id in HOOKED
        ]
        for id in waiting:
            await house.until(WAITING, id)
        async with api(house) as caller:
            installed = [await _installed_call(house, caller, call) for call in CALLS]
        for number, call in enumerate(CALLS):
            assert simulated[number] == installed[number], f"{number}: {call!s:.200}"
        await house.client.cancel(waiting[-1], reason="asked by the test")
        await house.quiet()
        rows = [await house.client.get(id) for id in waiting]
        ends = [
            [row.status, orjson.loads(row.result or "null"), orjson.loads(row.error or "null")]
            for row in rows
        ]
        assert simulated[len(CALLS)] == _plain(ends)
        started = await house.rows(
            "select count(*) from execution e join definition d on d.id = e.definition_id where d.ref = 'kit.odd'"
        )
        assert simulated[-1] == started[0]["count"] > 5
        await house.sound()


def _simulated_calls() -> list[Any]:
    simulation = Simulation(kit_programs)
    for name, options in WEBHOOKS.items():
        simulation.webhook(name, secret=WEBHOOK_SECRET, **options)
    waiting = [simulation.start("kit.hands_over", id=f"kit:hook:{id}", timeout=60) for id in HOOKED]
    responses = [
        simulation.call_webhook(
            call.webhook, call.body, headers=call.headers, query=call.query, signed=call.is_signed
        )
        for call in CALLS
    ]
    waiting[-1].cancel()
    ends = [[run.status, run.result if run.status == "completed" else None, run.error] for run in waiting]
    answers = [
        _plain([response.status, dict(response.body), response.event and response.event.payload])
        for response in responses
    ]
    return [*answers, _plain(ends), sum(run.ref == "kit.odd" for run in simulation.runs)]


async def _installed_call(house: Installation, caller: httpx.AsyncClient, call: Call) -> Any:
    headers = {"content-type": "application/json", **call.headers}
    if call.is_signed:
        options = WEBHOOKS[call.webhook]
        signed = KINDS[options["signature"]](call.body, int(time.time()), WEBHOOK_SECRET)
        if "header" in options:
            signed = {options["header"].lower(): WEBHOOK_SECRET}
        headers = {**signed, **headers}
    response = await caller.post(f"/hooks/{call.webhook}?{call.query}", content=call.body, headers=headers)
    body = response.json()
    event = None
    if response.status_code == 202:
        [row] = await house.rows("select payload::text as payload from event where id = $1", UUID(body["id"]))
        event = orjson.loads(row["payload"])
    return _plain([response.status_code, body, event])


def _definitions() -> list[Any]:
    from penstock.language.loading import load

    return list(load(kit_programs))
