"""The API against its own description, over a real socket: no error of the server, and no answer that is not described.

`PENSTOCK_TEST_API_EXAMPLES=200` tries that many requests of each operation instead of a few.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from penstock.language.packs.editor_schemas import pack_schema
from tests.penstock_api.conftest import Api

EXAMPLES = int(os.environ.get("PENSTOCK_TEST_API_EXAMPLES", "2"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
REFS = [
    *("shop.count", "shop.order_placed", "shop.broken", "shop.nightly", "shop.door", "shop.in_steps"),
    *("shop.called", "shop.approved"),
]


@pytest.fixture
async def address(api: Api) -> AsyncIterator[str]:
    """Return the address of the API on a socket."""
    server = uvicorn.Server(uvicorn.Config(api.app, port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await serving


# The services of this process draw random numbers meanwhile, and Hypothesis takes them for a strategy's.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
async def test_it_answers_as_it_says(api: Api, address: str) -> None:
    event = await api.house.client.publish("shop.order_placed", {"id": 13})
    run = await api.house.client.start("shop.in_steps", {"n": 1})
    await api.house.client.result(run, timeout=30)
    known = {"ref": REFS, "id": [str(event), str(run)]}
    async with api.caller() as call:
        document = (await call.get("/api/v1/openapi.json")).json()
        page = await call.get("/docs")
        schema = await call.get("/schemas/pack.schema.json")
        missing = await call.get("/schemas/rule.schema.json")
    assert schema.json() == pack_schema()
    assert (missing.status_code, "workflow.schema.json" in missing.json()["hint"]) == (404, True)
    assert document["openapi"].startswith("3.1")
    assert all(path in page.text for path in document["paths"])
    assert "<p>Answers: 204; a refusal" in page.text
    assert "http://" not in page.text.replace("http://127.0.0.1", "")  # nothing from elsewhere
    headers = {"Authorization": f"Bearer {api.secrets['all']}"}
    statuses: dict[str, Counter[int]] = {}
    found = await asyncio.to_thread(faults, document, address, headers, known, statuses)
    assert not found, "\n\n".join(found)
    assert len(statuses) > 60
    assert sum(any(status < 300 for status in seen) for seen in statuses.values()) > 25, statuses
    await api.house.sound()


def faults(
    document: dict[str, Any],
    address: str,
    headers: dict[str, str],
    known: dict[str, Any],
    statuses: dict[str, Counter[int]],
) -> list[str]:
    """Return the faults, operation by operation; `statuses` counts the answers of each."""
    found = []

    def call(case: Any) -> Any:
        answer = case.call(base_url=address, headers=headers)
        statuses.setdefault(case.operation.label, Counter())[answer.status_code] += 1
        return answer

    operations: Any = schemathesis.openapi.from_dict(document).get_all_operations()
    for operation in (result.ok() for result in operations):
        if operation.path == "/api/v1/stream":  # it answers for as long as it is asked to
            continue
        try:
            tried(operation, call, known)()
        except BaseExceptionGroup as failed:
            found += [f"{operation.label}: {error}" for error in failed.exceptions]
    return found


def tried(operation: Any, call: Callable[[Any], Any], known: dict[str, Any]) -> Callable[[], None]:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), data=st.data())
    def try_it(case: Any, data: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            if name in known and data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(st.sampled_from(known[name]))
        case.validate_response(call(case), checks=CHECKS)

    return try_it
