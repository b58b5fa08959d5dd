"""HTTP actions that are played in a simulation and in an installation, with the answers of one server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock import http_action
from penstock.language.definitions.action import Action

RETRY = {"max_attempts": 3, "initial_delay": 0.05, "jitter": 0}
SECRETS = {"shop_token": "t0ken of the shop"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """An answer of the server. With `hangs_up` it closes the connection instead."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs_up: bool = False


@dataclass(frozen=True)
class HttpProgram:
    """An HTTP action with its parameters, and the answers of the server for each path with its query, in turn. The last answer
    of a path is repeated."""

    name: str
    path: str
    answers: Mapping[str, tuple[Answer, ...]]
    request: Mapping[str, Any] | None = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    retry: Mapping[str, Any] | None = None

    def action(self, origin: str) -> Action[..., Any]:
        """Return the action for a server."""
        options = dict(self.options) | ({} if self.request is None else {"request": self.request})
        policies: dict[str, Any] = {} if self.retry is None else {"retry": self.retry}
        schema: dict[str, Any] = {key: {} for key in self.parameters}
        return http_action(
            f"kit.{self.name}", origin + self.path, parameters=schema, options=options, **policies
        )


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, json.dumps(value).encode(), {**JSON, **(headers or {})})


OK = _json({"ok": True})
HTTP_PROGRAMS = (
    HttpProgram("a_get", "/a/{{ parameters.id }}?x=1", {"/a/7%2F8?x=1&tag=a&tag=b": (OK,)},
                {"query": {"tag": ["a", "b"], "none": None}, "headers": {"X-Tenant": "{{ execution.tenant }}"}}, {"id": "7/8"}),
    HttpProgram("empty_part", "/a2/{{ parameters.id }}", {}, {}, {"id": ""}),
    HttpProgram("a_post", "/b", {"/b": (OK,)}, {"method": "POST", "body": {"n": "{{ parameters.n }}", "a": 1}}, {"n": 3}),
    HttpProgram("a_form", "/c", {"/c": (OK,)}, {"method": "POST", "form": {"n": [1, 2], "m": {"a": "b c"}}}),
    HttpProgram("a_put_of_text", "/d", {"/d": (Answer(204),)}, {"method": "PUT", "text": "é {{ parameters.n }}"}, {"n": 3}),
    HttpProgram("a_delete", "/e", {"/e": (Answer(200, b"done", {"Content-Type": "text/plain"}),)}, {"method": "DELETE"}),
    HttpProgram("retried", "/f", {"/f": (Answer(503), Answer(429, b"", {"Retry-After": "0"}), OK)}, retry=RETRY),
    HttpProgram("retried_in_vain", "/g", {"/g": (Answer(500, b"down"),)}, retry=RETRY),
    HttpProgram("without_policy", "/h", {"/h": (Answer(503, b"busy", {"Retry-After": "1"}),)}),
    HttpProgram("failed_for_good", "/i", {"/i": (_json({"error": "no"}, 403),)}, retry=RETRY),
    HttpProgram("own_statuses", "/j", {"/j": (Answer(418), _json(5, 404))},
                {"expect": [404], "retry": [418], "result": "{{ [response.status, response.body] }}"}, retry=RETRY),
    HttpProgram("broken_connection", "/k", {"/k": (Answer(hangs_up=True), OK)}, retry=RETRY),
    HttpProgram("broken_for_good", "/l", {"/l": (Answer(hangs_up=True),)}),
    HttpProgram("no_json", "/m", {"/m": (Answer(200, b"{", JSON),)}, retry=RETRY),
    HttpProgram("large_integer", "/n", {"/n": (Answer(200, b"[123456789012345678901]", JSON),)}),
    HttpProgram("other_bytes", "/o", {"/o": (Answer(200, b"\xff\x00", {"Content-Type": "image/png"}),)}),
    HttpProgram("compressed", "/p", {"/p": (Answer(200, gzip.compress(b"[1]"), {**JSON, "Content-Encoding": "gzip"}),)}),
    HttpProgram("headers_and_links", "/q", {"/q": (_json(1, headers={"Link": '</q?page=2>; rel="next"', "X-Count": "9"}),)},
                {"result": "{{ [response.headers.x_count, response.links.next] }}"}),
    HttpProgram("pages", "/r", {"/r": (_json({"items": [1], "next": "b"}),), "/r?c=b": (_json({"items": [2], "next": None}),)},
                {"pages": {"items": "{{ response.body['items'] }}",
                           "next": "{{ {'c': response.body.next} if response.body.next else none }}"}}),
    HttpProgram("endless_pages", "/s", {"/s": (_json({"items": [1]}),)},
                {"pages": {"items": "{{ response.body['items'] }}", "next": "/s"}}),
    HttpProgram("redirected", "/t", {"/t": (Answer(302, b"", {"Location": "/t2"}),), "/t2": (OK,)}),
    HttpProgram("redirected_post", "/u", {"/u": (Answer(303, b"", {"Location": "/u2"}),), "/u2": (OK,)},
                {"method": "POST", "body": {"a": 1}}),
    HttpProgram("redirected_put", "/v", {"/v": (Answer(302, b"", {"Location": "/v2"}),)}, {"method": "PUT", "body": 1}),
    HttpProgram("redirected_in_a_circle", "/w", {"/w": (Answer(302, b"", {"Location": "/w"}),)}),
    HttpProgram("redirected_to_nowhere", "/x", {"/x": (Answer(302, b"", {"Location": "ftp://x/"}),)}),
    HttpProgram("secret", "/y", {"/y": (_json({"echo": SECRETS["shop_token"]}),)},
                {"headers": {"Authorization": "Bearer {{ secrets.token }}"}}, options={"secrets": {"token": "shop_token"}}),
    HttpProgram("missing_secret", "/z", {"/z": (OK,)}, options={"secrets": {"token": "no_such_token"}}),
    HttpProgram("unknown_name", "/aa", {"/aa": (OK,)}, {"result": "{{ response.body.nope.nope }}"}),
    HttpProgram("large_result", "/ab", {"/ab": (_json("x" * 300_000),)}),
    HttpProgram("envelope", "/ac", {"/ac": (Answer(200, b'{"accepted": 1}'),)}, None, {"order": 7}),
    HttpProgram("envelope_retried", "/ad", {"/ad": (Answer(503), Answer(200, b""))}, None, {"order": 7}, retry=RETRY),
    HttpProgram("envelope_refused", "/ae", {"/ae": (Answer(422, b"no"),)}, None, {"order": 7}, retry=RETRY),
    HttpProgram("envelope_without_json", "/af", {"/af": (Answer(200, b"no json"),)}, None, {}, retry=RETRY),
    HttpProgram("envelope_moved", "/ag", {"/ag": (Answer(307, b"", {"Location": "/ag2"}),), "/ag2": (Answer(200, b"1"),)}, None),
)  # fmt: skip
