"""A name that a route does not take is refused, and so is a value of another type: at every route that is described."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.penstock_api.conftest import Api

PREFIX = "/api/v1"
ID = "00000000-0000-0000-0000-000000000000"
WRONG: dict[str, tuple[Any, ...]] = {
    "boolean": ("no", "true", 0, 1, [], {}),
    "integer": ("3", True, 1.5, 2**31, 2**63, -(2**63), []),
    "number": ("3", True, 1e300, [], {}),
    "string": (3, True, [], {}, "a\0b", "\ud800", "x" * 20_000),
    "object": ("x", 3, [], True),
    "array": ("x", 3, {}, True),
}


async def described(call: httpx.AsyncClient) -> dict[str, Any]:
    document: dict[str, Any] = (await call.get(f"{PREFIX}/openapi.json")).json()
    return document


async def test_unknown_query_parameters_are_refused(api: Api, call: httpx.AsyncClient) -> None:
    document = await described(call)
    answers = []
    for path, methods in document["paths"].items():
        if path.endswith("/stream"):  # answers for as long as it is asked to
            continue
        if "/account/" in path:  # a token has no account, which is told first
            continue
        for method, operation in methods.items():
            if "security" not in operation:
                continue
            for name in ("no_such", "state", "root"):
                answer = await call.request(method, path.replace("{id}", ID), params={name: "failed"})
                if answer.status_code != 422 or "hint" not in answer.json():
                    answers.append(f"{method} {path}?{name}: {answer.status_code} {answer.text[:100]}")
    assert not answers, "\n".join(answers)


@pytest.mark.parametrize("name", ["state", "param"])
async def test_submit_with_a_query_is_refused(call: httpx.AsyncClient, name: str) -> None:
    answer = await call.post(f"{PREFIX}/executions", params={name: "1"}, json={"action": "shop.count"})
    assert (answer.status_code, name in answer.text) == (422, True)


async def test_bodies_of_wrong_types_are_refused(api: Api, call: httpx.AsyncClient) -> None:
    """Each property of each body, with values of every other type and out of its column: a problem with a hint, and no 500."""
    document = await described(call)
    schemas = document["components"]["schemas"]
    answers, tried = [], 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or "security" not in operation:
                continue
            body = resolved(content["schema"], schemas)
            for name, schema in [*body.get("properties", {}).items(), ("no_such", {})]:
                kinds = {branch.get("type") for branch in alternatives(schema, schemas)}
                for kind, values in WRONG.items():
                    for value in values if None not in kinds or not schema else ():
                        tried += 1
                        answer = await send(call, method, path.replace("{id}", ID), {name: value})
                        strange = kind in kinds or (kind == "integer" and "number" in kinds)
                        if name == "no_such":
                            strange = True
                        if answer.status_code >= 500 or (
                            strange and answer.status_code < 400 and refusable(kind, value, kinds)
                        ):
                            answers.append(
                                f"{method} {path} {name}={str(value)[:30]!r}: {answer.status_code} {answer.text[:120]}"
                            )
                        if answer.status_code >= 400 and "hint" not in answer.json():
                            answers.append(
                                f"{method} {path} {name}={str(value)[:30]!r}: no hint: {answer.text[:120]}"
                            )
    assert tried > 500
    assert not answers, f"{len(answers)} of {tried}:\n" + "\n".join(answers)
    await api.house.sound()


def refusable(kind: str, value: Any, kinds: set[Any]) -> bool:
    """Return true if a value of WRONG[kind] is of none of the types that the property takes."""
    match value:
        case bool():
            return "boolean" not in kinds
        case int() | float():
            return not kinds & {"integer", "number"}
        case str():
            return "string" not in kinds
        case list():
            return "array" not in kinds
    return "object" not in kinds


async def send(call: httpx.AsyncClient, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
    import json

    return await call.request(
        method, path, content=json.dumps(body), headers={"content-type": "application/json"}
    )


def resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    for branch in alternatives(schema, schemas):
        if "properties" in branch:
            return branch
    return {}


def alternatives(schema: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in schema:
        return alternatives(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    below = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    return [branch for part in below for branch in alternatives(part, schemas)] if below else [schema]


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "1" * 5000], ids=["nested", "digits"])
async def test_body_that_no_decoder_reads_is_refused(call: httpx.AsyncClient, value: str) -> None:
    body = f'{{"action": "shop.count", "parameters": {{"words": {value}}}}}'
    answer = await call.post(
        f"{PREFIX}/executions", content=body, headers={"content-type": "application/json"}
    )
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (400, "urn:penstock:error:InvalidInput")
    assert problem["hint"].startswith("Send JSON")


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
async def test_each_field_for_an_instant_refuses_one_out_of_range(
    call: httpx.AsyncClient, instant: str
) -> None:
    cron = {"action": "shop.count", "cron": "0 0 * * *"}
    bodies = [
        ("PUT", "/schedules/shop.far", {"action": "shop.count", "at": instant}),
        ("PUT", "/schedules/shop.far", {**cron, "starts_at": instant}),
        ("PUT", "/schedules/shop.far", {**cron, "ends_at": instant}),
        ("PATCH", "/schedules/shop.nightly", {"ends_at": instant}),
    ]
    for method, path, body in bodies:
        answer = await call.request(method, f"{PREFIX}{path}", json=body)
        assert (answer.status_code, "out of range" in answer.text) == (422, True), (body, answer.text)
    document = await described(call)
    for path, methods in document["paths"].items():
        operation = methods.get("get", {})
        names = [
            item["name"] for item in operation.get("parameters", ()) if "date-time" in str(item["schema"])
        ]
        for name in names if "{" not in path and not path.endswith("/stream") else ():
            answer = await call.get(f"{PREFIX}{path.removeprefix(PREFIX)}", params={name: instant})
            assert answer.status_code < 500, (path, name, answer.text)
