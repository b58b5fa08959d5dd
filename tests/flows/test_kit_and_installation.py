"""The programs of `kit_programs` in a simulation and in an installation: results, errors and texts are the same."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock.errors import ExecutionFailed, PenstockError
from penstock.testing import Simulation
from penstock.testing.simulated_run import SimulatedRun
from tests.flows import kit_programs
from tests.flows.installation import Installation
from tests.flows.kit_programs import EVENTS, PROGRAMS, Program

pytestmark = pytest.mark.either_transport

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
WAITING = "select id from execution where (id = $1 or parent = $1) and status = 'waiting'"
INQUIRY = WAITING + " and exists (select from inquiry where execution_id = id)"
REPORTS = ("result", "error")
"""The reports of other systems."""


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
    simulation, refusals = Simulation(kit_programs), []
    try:
        run = simulation.start(program.target, program.parameters)
    except PenstockError as error:
        return _refusal(error)
    for kind, *arguments in program.reports:
        try:
            if kind in REPORTS:
                _report(simulation, run, kind, arguments[0])
            else:
                getattr(run, kind)(*arguments, **({"by": "ada"} if kind == "answer" else {}))
        except PenstockError as error:
            refusals.append(_refusal(error))
    run.finish()
    return _plain([run.status, run.result if run.status == "completed" else None, run.error, refusals])


def _report(simulation: Simulation, run: SimulatedRun, kind: str, value: Any) -> None:
    address = simulation._effects.callback_address(run._execution, 1)
    simulation.call_back(address, {kind: value})


async def _installed(house: Installation, program: Program) -> Any:
    refusals = []
    try:
        id = await house.client.start(program.target, program.parameters)
    except PenstockError as error:
        return _refusal(error)
    for report in program.reports:
        try:
            await _play(house, id, *report)
        except PenstockError as error:
            refusals.append(_refusal(error))
    with suppress(ExecutionFailed, TimeoutError):
        await house.client.result(id, timeout=20)
    row = await house.client.get(id)
    result = orjson.loads(row.result or "null") if row.status == "completed" else None
    return _plain([row.status, result, orjson.loads(row.error or "null"), refusals])


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
    else:
        await house.until(WAITING, id)
        await client.complete(id, **{kind: arguments[0]}, by="ada")


async def test_programs_end_alike(house: Installation) -> None:
    await house.start(*_definitions())
    simulated = {program.name: await asyncio.to_thread(_simulated, program) for program in PROGRAMS}
    assert len(simulated) == len(PROGRAMS) >= 60
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


def _definitions() -> list[Any]:
    from penstock.language.loading import load

    return list(load(kit_programs))
