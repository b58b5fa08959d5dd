"""The credential of each operation, as a server receives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.openapi_calls import document_of, report_of, requests_of

SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "app": {"type": "apiKey", "in": "header", "name": "X-App"},
    "session": {"type": "apiKey", "in": "cookie", "name": "SID"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://a.example"},
    "digest": {"type": "http", "scheme": "digest"},
    "mutual": {"type": "mutualTLS"},
}


def secured(*alternatives: list[str], whole: Any = None, **rest: Any) -> dict[str, Any]:
    """Return a document with an operation `a` that has these alternatives of schemes."""
    security: list[dict[str, Any]] = [{name: [] for name in names} for names in alternatives]
    return document_of(
        {"GET /a": {"operationId": "a", "security": security, **rest}},
        components={"securitySchemes": SCHEMES},
        **({"security": whole} if whole is not None else {}),
    )


NOTHING: tuple[str, dict[str, str]] = ("/a", {})


@pytest.mark.parametrize(
    ("alternatives", "target", "headers"),
    [
        ([["key"]], "/a", {"x-key": "S"}),
        ([["session"]], "/a", {"cookie": "SID=S"}),
        ([["query"]], "/a?api_key=S", {}),
        ([["bearer"]], "/a", {"authorization": "Bearer S"}),
        ([["oauth"]], "/a", {"authorization": "Bearer S"}),
        ([["oidc"]], "/a", {"authorization": "Bearer S"}),
        ([["basic"]], "/a", {"authorization": "Basic S"}),
        ([["basic"], ["bearer"]], "/a", {"authorization": "Basic S"}),
        ([["bearer"], ["key"]], "/a", {"authorization": "Bearer S"}),
        ([["digest"], ["key"]], "/a", {"x-key": "S"}),
        ([["basic", "bearer"], ["key"]], "/a", {"x-key": "S"}),
        ([["key", "digest"], ["query"]], "/a?api_key=S", {}),
        ([["key", "app"]], "/a", {"x-key": "S", "x-app": "S-app"}),
        ([["basic", "query"]], "/a?api_key=S-query", {"authorization": "Basic S"}),
        ([[], ["key"]], "/a", {"x-key": "S"}),
        ([["digest"], []], "/a", {}),
        ([], "/a", {}),
    ],
)
async def test_first_alternative_is_sent(
    tmp_path: Path, alternatives: list[list[str]], target: str, headers: dict[str, str]
) -> None:
    document = secured(*alternatives, whole=[{"bearer": []}])
    stored = {"tok": "S", "tok_app": "S-app", "tok_query": "S-query"}
    [request] = await requests_of(document, tmp_path, [("a", {})], "--secret", "tok", secrets=stored)
    assert request.path == target
    assert {
        n: request.headers[n] for n in ("authorization", "x-key", "x-app", "cookie") if n in request.headers
    } == (headers)


async def test_optional_credential_needs_a_named_secret(tmp_path: Path) -> None:
    [request] = await requests_of(secured([], ["key"]), tmp_path, [("a", {})])
    assert "x-key" not in request.headers


async def test_undeclared_credential_is_a_bearer_token(tmp_path: Path) -> None:
    document = document_of({"GET /a": {"operationId": "a"}})
    [request] = await requests_of(document, tmp_path, [("a", {})], "--secret", "tok")
    assert request.headers["authorization"] == "Bearer tok"


@pytest.mark.parametrize("names", [["digest"], ["mutual"], ["basic", "bearer"], ["missing"]])
def test_credential_that_cannot_be_sent_is_a_gap(tmp_path: Path, names: list[str]) -> None:
    report = report_of(secured(names), tmp_path)
    assert "GET /a: its credential cannot be sent: " in report
    assert "| actions | 1 | 0 | 0 |" in report


def test_each_scheme_has_its_own_secret(tmp_path: Path) -> None:
    report = report_of(secured(["key", "basic"]), tmp_path, "--secret", "tok")
    assert (
        "the security scheme basic has a credential of its own | Store it as the secret tok_basic." in report
    )
    assert "Store base64 of user:password as the secret tok_basic." in report


def test_secret_of_a_public_document_is_a_gap(tmp_path: Path) -> None:
    report = report_of(secured(), tmp_path, "--secret", "tok")
    assert "no operation sends the secret tok" in report


def test_unknown_key_of_a_scheme_is_a_gap(tmp_path: Path) -> None:
    document = secured(["key"])
    document["components"]["securitySchemes"] = {"key": {**SCHEMES["key"], "prefix": "Token "}}
    assert "the security scheme key: prefix is not read" in report_of(document, tmp_path)


async def test_secret_in_a_cookie_stands_beside_parameters(tmp_path: Path) -> None:
    parameter = {"name": "lang", "in": "cookie", "required": True, "schema": {"type": "string"}}
    document = secured(["session"], parameters=[parameter])
    [request] = await requests_of(
        document, tmp_path, [("a", {"lang": "a b"})], secrets={"calls_token": "s/="}
    )
    assert request.headers["cookie"] == "lang=a%20b; SID=s/="
