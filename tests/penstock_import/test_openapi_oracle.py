"""Random operations, whose requests are compared with those that plain code makes of the same choices. It shares no code with
the import, and reads OpenAPI 3.1.1 and RFC 6570 for itself."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest

from tests.penstock_import.openapi_calls import document_of, requests_of
from tests.penstock_worker.executors.web import Request

OPERATIONS = 40
TEXTS = ["x", "a b", "a,b", "é", "50%", "a&b=c", "x|y", "p/q", "+", "~._-", "0"]
KEYS = ["r", "g", "b c", "ü"]
SCHEMES: dict[str, dict[str, Any]] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "SID"},
    "asked": {"type": "apiKey", "in": "query", "name": "api-key"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "digest": {"type": "http", "scheme": "digest"},
}
SENT: dict[str, tuple[str, str, str]] = {
    "key": ("headers", "x-key", ""),
    "session": ("cookies", "SID", ""),
    "asked": ("query", "api-key", ""),
    "bearer": ("headers", "authorization", "Bearer "),
}


@dataclass
class Expected:
    """The request that an operation should make. `query` and `form` have a name and the texts between its commas."""

    path: str = ""
    query: list[tuple[str, list[str]]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[tuple[str, str]] = field(default_factory=list)
    body: Any = None
    kind: str | None = None


def shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | int) else str(value)


def flat(value: Any) -> list[str]:
    """Return the texts of a value that does not explode."""
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, shown(item))]
    return [shown(item) for item in value] if isinstance(value, list) else [shown(value)]


def in_query(name: str, style: str, explode: bool, value: Any) -> list[tuple[str, list[str]]]:
    if not isinstance(value, list | dict):
        return [(name, [shown(value)])]
    if style == "deepObject" and isinstance(value, dict):
        return [(f"{name}[{key}]", [shown(item)]) for key, item in value.items()]
    if explode and isinstance(value, dict):
        return [(key, [shown(item)]) for key, item in value.items()]
    if explode:
        return [(name, [shown(item)]) for item in value]
    texts = flat(value)
    return [
        (
            name,
            texts if style == "form" else [{"spaceDelimited": " ", "pipeDelimited": "|"}[style].join(texts)],
        )
    ]


def in_path(name: str, style: str, value: Any) -> str:
    """Return the part of a path with its commas, decoded and between angle brackets."""
    texts = "".join(f"<{text}>" for text in flat(value))
    return {"simple": "", "label": ".", "matrix": f";{name}="}[style] + texts


def in_header(explode: bool, value: Any) -> str:
    if explode and isinstance(value, dict):
        return ",".join(f"{key}={shown(item)}" for key, item in value.items())
    return ",".join(flat(value))


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, kind: str, *, is_plain: bool = False) -> Any:
        texts = ["x", "yz", "5"] if is_plain else TEXTS
        make: dict[str, Callable[[], Any]] = {
            "string": lambda: self.random.choice(texts),
            "integer": lambda: self.random.randint(-5, 5),
            "boolean": lambda: self.random.random() < 0.5,
            "array": lambda: [self.random.choice(texts) for _ in range(self.random.randint(1, 3))],
            "object": lambda: {
                key: self.random.choice([*texts, 7, True])
                for key in self.random.sample(KEYS[:2] if is_plain else KEYS, self.random.randint(1, 2))
            },
        }
        return make[kind]()

    def kind(self) -> str:
        return self.random.choice(["string", "integer", "boolean", "array", "object"])

    def schema(self, kind: str) -> dict[str, Any]:
        return self.random.choice([{"type": kind}, {"type": [kind, "null"]}, {"anyOf": [{"type": kind}]}])

    def styled(self, styles: list[str], explodes: dict[str, list[bool]]) -> tuple[dict[str, Any], str, bool]:
        """Return the keys of a style, and the style and explode that they mean."""
        style = self.random.choice(styles)
        explode = self.random.choice(explodes[style])
        keys: dict[str, Any] = {"style": style, "explode": explode}
        if style == styles[0] and self.random.random() < 0.5:
            del keys["style"]
        if explode == (style == "form") and self.random.random() < 0.5:
            del keys["explode"]
        return keys, style, explode

    def operation(self, number: int, server: str) -> tuple[str, dict[str, Any], dict[str, Any], Expected]:
        """Return method and path, the operation, the parameters of a call, and the request of it."""
        expected = Expected(path=f"/n{number}")
        path, parameters = f"/n{number}", []
        params: dict[str, Any] = {}
        for index in range(self.random.randint(0, 4)):
            name, kind = f"p{index}", self.kind()
            place = self.random.choice(["query", "query", "path", "header", "cookie"])
            value = self.value(kind, is_plain=place == "header")
            keys: dict[str, Any] = {}
            is_sent = place == "path" or self.random.random() < 0.8
            if place == "query":
                styles = ["form"]
                if kind in ("array", "object"):
                    styles += ["spaceDelimited", "pipeDelimited"]
                styles += ["deepObject"] if kind == "object" else []
                both = [True, False]
                keys, style, explode = self.styled(
                    styles,
                    {"form": both, "spaceDelimited": [False], "pipeDelimited": [False], "deepObject": [True]},
                )
                expected.query += in_query(name, style, explode, value) if is_sent else []
            elif place == "path":
                none = [False]
                keys, style, _ = self.styled(
                    ["simple", "label", "matrix"], {"simple": none, "label": none, "matrix": none}
                )
                path += f"/{{{name}}}"
                expected.path += "/" + in_path(name, style, value)
            elif place == "header":
                keys, _, explode = self.styled(["simple"], {"simple": [True, False]})
                expected.headers |= {name: in_header(explode, value)} if is_sent else {}
            else:
                keys = {"explode": False} if kind in ("array", "object") else {}
                expected.cookies += [(name, "".join(f"<{text}>" for text in flat(value)))] if is_sent else []
            required = place == "path" or (is_sent and self.random.random() < 0.5)
            parameters.append(
                {"name": name, "in": place, "required": required, "schema": self.schema(kind), **keys}
            )
            params |= {name: value} if is_sent else {}
        method = self.random.choice(["GET", "POST", "PUT", "PATCH", "DELETE"])
        operation: dict[str, Any] = {"operationId": f"n{number}", "parameters": parameters}
        if method != "GET":
            self.add_body(operation, params, expected)
        self.add_security(operation, expected)
        if self.random.random() < 0.3:
            operation["servers"] = [{"url": f"{server}/own"}]
            expected.path = "/own" + expected.path
        return f"{method} {path}", operation, params, expected

    def add_body(self, operation: dict[str, Any], params: dict[str, Any], expected: Expected) -> None:
        kind = self.random.choice(
            ["none", "application/json", "application/patch+json", "form", "text/csv", "multipart/form-data"]
        )
        if kind == "none":
            return
        expected.kind = kind
        media: dict[str, Any] = {"schema": {}}
        if kind in ("form", "multipart/form-data"):
            properties, encodings = {}, {}
            expected.body = []
            for index in range(self.random.randint(1, 3)):
                name, type_ = f"f{index}", self.kind()
                value = self.value(type_)
                properties[name] = self.schema(type_)
                params[name] = value
                if kind == "form" and type_ in ("array", "object") and self.random.random() < 0.6:
                    encodings[name], style, explode = self.styled(["form"], {"form": [True, False]})
                    encodings[name] = encodings[name] or {"style": "form"}
                    expected.body += in_query(name, style, explode, value)
                elif type_ == "object":
                    expected.body.append((name, [value]))
                else:
                    expected.body += in_query(name, "form", True, value)
            media = {"schema": {"type": "object", "properties": properties}, "encoding": encodings}
            if kind == "form":
                kind = expected.kind = "application/x-www-form-urlencoded"
        else:
            expected.body = params["body"] = self.value("string" if kind == "text/csv" else "object")
        operation["requestBody"] = {"required": True, "content": {kind: media}}

    def add_security(self, operation: dict[str, Any], expected: Expected) -> None:
        """Add alternatives of schemes. The first one whose schemes can all be sent is sent."""
        if self.random.random() < 0.3:
            return
        alternatives = [
            self.random.sample(sorted(SCHEMES), self.random.randint(1, 2))
            for _ in range(self.random.randint(0, 3))
        ]
        if alternatives and not any("digest" not in names for names in alternatives):
            alternatives.append(["key"])
        operation["security"] = [{name: [] for name in names} for names in alternatives]
        for name in next((names for names in alternatives if "digest" not in names), []):
            place, target, prefix = SENT[name]
            text = f"{prefix}secret-{name}"
            if place == "query":
                expected.query.append((target, [text]))
            elif place == "cookies":
                expected.cookies.append((target, f"<{text}>"))
            else:
                expected.headers[target] = text


def pairs_of(text: str) -> list[tuple[str, list[str]]]:
    return [
        (unquote_plus(name), [unquote_plus(part) for part in value.split(",")])
        for name, _, value in (pair.partition("=") for pair in text.split("&") if pair)
    ]


def bracketed(text: str, prefix: str = "") -> str:
    return prefix + "".join(f"<{unquote(part)}>" for part in text.split(","))


def part_of(text: str, index: int) -> str:
    """Return a part of a path as `in_path` writes it."""
    if index == 0 or text in ("own",) or (text[:1] == "n" and text[1:].isdecimal()):
        return text
    if text.startswith(";"):
        name, _, value = text.partition("=")
        return bracketed(value, name + "=")
    # a dot that stands first is that of the style `label`, since no value begins with one
    return bracketed(text[1:], ".") if text.startswith(".") else bracketed(text)


def body_of(request: Request) -> tuple[str | None, Any]:
    kind = request.headers.get("content-type")
    if kind is None:
        return None, None
    text = request.body.decode()
    if kind.endswith("json"):
        return kind, json.loads(text)
    if kind.startswith("multipart/form-data"):
        boundary = kind.partition("boundary=")[2]
        parts = []
        for part in text.split(f"--{boundary}")[1:-1]:
            head, _, content = part.strip("\r\n").partition("\r\n\r\n")
            value = json.loads(content) if "Content-Type: application/json" in head else content
            parts.append((head.partition('name="')[2].partition('"')[0], [value]))
        return "multipart/form-data", parts
    if kind.startswith("application/x-www-form"):
        return kind, pairs_of(text)
    return kind, text


def received(request: Request, names: set[str]) -> Expected:
    path, _, query = request.path.partition("?")
    kind, body = body_of(request)
    cookies = [cookie.partition("=") for cookie in request.headers.get("cookie", "").split("; ") if cookie]
    return Expected(
        "/".join(part_of(part, index) for index, part in enumerate(path.split("/"))),
        pairs_of(query),
        {name: text for name, text in request.headers.items() if name in names},
        [(name, bracketed(text)) for name, _, text in cookies],
        body,
        kind,
    )


def as_json_fields(expected: Expected) -> Expected:
    """Return the request with the objects in the fields of a URL-encoded form as their JSON text."""
    if expected.kind == "application/x-www-form-urlencoded":
        expected.body = [
            (
                name,
                [
                    json.dumps(v, separators=(",", ":"), ensure_ascii=False) if isinstance(v, dict) else v
                    for v in values
                ],
            )
            for name, values in expected.body
        ]
    return expected


@pytest.mark.parametrize("seed", range(4))
async def test_random_operations_send_the_documented_request(tmp_path: Path, seed: int) -> None:
    generator = Generator(seed)
    calls: list[tuple[str, dict[str, Any]]] = []
    expected: list[Expected] = []

    def document(server: str) -> dict[str, Any]:
        operations = {}
        for number in range(OPERATIONS):
            key, operation, params, request = generator.operation(number, server)
            operations[key] = operation
            calls.append((f"n{number}", params))
            expected.append(as_json_fields(request))
        return document_of(
            operations,
            servers=[{"url": server}],
            security=[],
            components={"securitySchemes": SCHEMES},
        )

    stored = {"calls_token": "secret-?"} | {f"calls_token_{name}": f"secret-{name}" for name in SCHEMES}
    requests = await requests_of(document, tmp_path, calls, secrets=stored)
    names = {"x-key", "authorization", *(f"p{index}" for index in range(4))}
    report = (tmp_path / "calls/IMPORT.md").read_text()
    first = next(
        name
        for name in sorted(SCHEMES)
        if f"calls_token_{name}" not in report and f"secret-{name}" in str(expected)
    )
    for request, wanted, (name, params) in zip(requests, expected, calls, strict=True):
        arrived = received(request, names)
        assert str(arrived).replace("secret-?", f"secret-{first}") == str(wanted), (name, params)
