"""The hello of a worker that calls a gateway."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import action
from penstock.language.schemas import parameters_schema, schema_differences
from penstock.language.terms.ids import new_id
from penstock.service.heartbeat import Identity
from penstock_worker.gateway import gateway_session
from penstock_worker.gateway.gateway_client import GatewayClient
from penstock_worker.gateway.gateway_session import offered_actions, say_hello
from tests.penstock_worker.gateway.stub_gateway import Json, stub_gateway


@action(pack="gate")
async def counted(n: int, step: int = 1) -> int:
    return n + step


ACTIONS = {"gate.counted": counted}
DIFFERENCE = {"action": "gate.counted", "part": "result", "text": "the definition has no schema"}


def welcome(**fields: Any) -> Json:
    return {
        "worker": str(new_id()),
        "session": "psw_x",
        "beat_every": 10.0,
        "lost_after": 50.0,
        "wait_at_most": 60.0,
        "result_bytes": 1000,
        **fields,
    }


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        ({}, []),  # a gateway of an earlier version
        ({"differences": []}, []),
        ({"differences": [DIFFERENCE]}, [["gate.counted, result: the definition has no schema"]]),
    ],
)
async def test_hello_names_schemas_and_logs_differences(answer: Json, logged: list[list[str]]) -> None:
    worker = Identity(new_id(), "worker", "tester", ["default"], ["gate.counted"], {}, 1)
    with stub_gateway(hello=lambda _: welcome(**answer)) as stub, capture_logs() as lines:
        client = GatewayClient([stub.address], "pst_x")
        await say_hello(client, worker, ACTIONS)
        await client.close()
    [hello] = stub.messages("hello")
    assert hello["actions"] == [
        {"ref": "gate.counted", "parameters": counted.parameters_schema, "result": {"type": "integer"}}
    ]
    assert [line["differences"] for line in lines if line["event"] == "worker.schemas_differ"] == logged


def test_schemas_of_a_hello_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_session, "SCHEMAS_BYTES", 10)
    assert offered_actions(["gate.counted"], ACTIONS) == [{"ref": "gate.counted"}]


@action(pack="gate")
async def open_ended(a: int, **more):  # type: ignore[no-untyped-def]
    return more


@action(pack="gate")
async def closed(a: int = 1) -> int:
    return a


@action(pack="gate")
async def without_parameters() -> None: ...


@pytest.mark.parametrize("own", [open_ended, closed, without_parameters], ids=lambda own: own.ref)
def test_gateway_sees_no_difference_from_its_own_module(own: Any) -> None:
    [offered] = offered_actions([own.ref], {own.ref: own})
    defined = own.document().body["parameters"]
    assert list(schema_differences(defined, parameters_schema(offered["parameters"]))) == []
