"""HTTP actions in a simulation and in an installation: requests, results, errors and their texts are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import httpcore
import orjson

from penstock.errors import ExecutionFailed, PenstockError
from penstock.operate import secrets
from penstock.testing import Simulation
from tests.flows.installation import Installation
from tests.flows.kit_requests import HTTP_PROGRAMS, SECRETS, HttpProgram
from tests.flows.test_kit_and_installation import _plain, _refusal
from tests.penstock.operate.keys import KEY
from tests.penstock_worker.executors.web import Answer as WebAnswer
from tests.penstock_worker.executors.web import Request, Web, serving

SENT = frozenset(
    {
        "authorization",
        "x-tenant",
        "content-type",
        "idempotency-key",
        "accept",
        "accept-encoding",
        "content-length",
    }
)
"""The headers of requests that are compared. Others belong to the connection."""
HUNG_UP = httpcore.RemoteProtocolError("Server disconnected without sending a response.")


async def test_http_actions_end_alike(database: str) -> None:
    async with serving() as web, Installation(database, None, secrets_key=KEY) as house:
        for name, value in SECRETS.items():
            await secrets.put(house.session, "public", name, value, by="ada")
        actions = {program.name: program.action(web.url("")) for program in HTTP_PROGRAMS}
        for program in HTTP_PROGRAMS:
            for target, answers in program.answers.items():
                web.answer(
                    target,
                    *(
                        WebAnswer(part.status, part.body, dict(part.headers), part.hangs_up)
                        for part in answers
                    ),
                )
        await house.start(*actions.values(), executors={"http": {"allow": ["127.0.0.1"]}})
        simulated = [
            await asyncio.to_thread(_simulated, program, actions[program.name], web)
            for program in HTTP_PROGRAMS
        ]
        ends = await asyncio.gather(*(_installed(house, program) for program in HTTP_PROGRAMS))
        for program, simulation, end in zip(HTTP_PROGRAMS, simulated, ends, strict=True):
            targets = {target.partition("?")[0] for target in program.answers}
            requests = [request for request in web.requests if request.path.partition("?")[0] in targets]
            assert simulation == [*end, _compared(requests)], program.name
        await house.sound()


def _simulated(program: HttpProgram, action: Any, web: Web) -> Any:
    simulation = Simulation(action)
    for name, value in SECRETS.items():
        simulation.secret(name, value)
    for target, answers in program.answers.items():
        for number, answer in enumerate(answers, 1):
            simulation.respond(
                web.url(target),
                status=answer.status,
                content=answer.body,
                headers=answer.headers,
                raises=HUNG_UP if answer.hangs_up else None,
                times=None if number == len(answers) else 1,
            )
    try:
        run = simulation.run(action, dict(program.parameters))
    except PenstockError as error:
        return [_refusal(error), []]
    requests = [
        Request(sent.method, sent.url.removeprefix(web.url("")), dict(sent.headers), sent.content)
        for sent in simulation.requests
    ]
    result = run.result if run.status == "completed" else None
    return [_plain([run.status, result, run.error]), _compared(requests)]


async def _installed(house: Installation, program: HttpProgram) -> Any:
    try:
        id = await house.client.start(f"kit.{program.name}", dict(program.parameters))
    except PenstockError as error:
        return [_refusal(error)]
    with suppress(ExecutionFailed):
        await house.client.result(id, timeout=20)
    row = await house.client.get(id)
    result = orjson.loads(row.result or "null") if row.status == "completed" else None
    return [_plain([row.status, result, orjson.loads(row.error or "null")])]


def _compared(requests: Sequence[Request]) -> Any:
    return [
        [
            request.method,
            request.path,
            _plain({name: value for name, value in sorted(request.headers.items()) if name in SENT}),
            _plain(request.body.decode()),
        ]
        for request in requests
    ]
