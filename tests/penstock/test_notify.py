"""The action `penstock.notify`: one message to each address, over Apprise's own JSON service on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from pydantic import SecretStr

from penstock import NonRetryable, Rule, action
from penstock.errors import ExecutionFailed
from penstock.notify import notify
from penstock.operate import secrets
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

pytestmark = [
    pytest.mark.either_transport,
    pytest.mark.filterwarnings("ignore:.imghdr. is deprecated:DeprecationWarning"),  # Apprise imports it
]


class Service(BaseHTTPRequestHandler):
    """A service that notes messages. It refuses those to a path in `DOWN`."""

    MESSAGES: ClassVar[list[tuple[str, Any]]] = []
    DOWN: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.MESSAGES.append((self.path.strip("/"), body))
        self.send_response(500 if self.path.strip("/") in self.DOWN else 200)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    Service.MESSAGES.clear()
    Service.DOWN.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"json://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def sent() -> list[tuple[str, str, str]]:
    return sorted((path, body["title"], body["message"]) for path, body in Service.MESSAGES)


def test_message_goes_to_each_address(address: str) -> None:
    assert notify(f"{address}/a, {address}/b", "2 failed", "both") == 2
    assert notify([f"{address}/c"], "title alone") == 1
    assert sent() == [
        ("a", "2 failed", "both"),
        ("b", "2 failed", "both"),
        ("c", "title alone", "title alone"),
    ]


def test_address_that_fails_is_named_by_its_number(address: str) -> None:
    Service.DOWN.add("b")
    with pytest.raises(ConnectionError) as failed:
        notify([f"{address}/a", f"{address}/b"], "x", "y")
    assert str(failed.value) == "1 of 2 addresses did not take the message: [2]"


@pytest.mark.parametrize("urls", ["nothing-like-it://token", "", []])
def test_unknown_address_is_not_shown_and_not_tried_again(urls: Any) -> None:
    with pytest.raises(NonRetryable) as refused:
        notify(urls, "x")
    assert "token" not in str(refused.value)


@action(pack="alerts")
async def break_down(n: int) -> None:
    raise NonRetryable(f"order {n} is lost")


async def test_failures_of_a_burst_are_one_message(
    make_house: Callable[..., Installation], address: str
) -> None:
    alert = Rule(
        "alerts.to_chat",
        trigger="penstock.execution.failed",
        action=notify,
        debounce="2s",
        keep="all",
        params={
            "urls": "{{ secrets.alert_urls }}",
            "title": "{{ payloads | length }} executions failed",
            "body": "{{ payloads | map(attribute='error.message') | sort | join(', ') }}",
        },
    )
    async with make_house(secrets_key=SecretStr(KEY)) as house:
        await secrets.put(house.session, "public", "alert_urls", f"{address}/chat", by="ada")
        await house.start(break_down, notify, alert)
        await house.client.start_many(break_down, [{"n": n} for n in range(3)])
        await house.until("select 1 from burst")
        await house.quiet()
        assert sent() == [
            ("chat", "3 executions failed", "order 0 is lost, order 1 is lost, order 2 is lost")
        ]
        stored = await house.rows("select params::text as params from payload")
        assert not any(address in row["params"] for row in stored)


async def test_notify_that_fails_starts_no_other(house: Installation, address: str) -> None:
    Service.DOWN.add("chat")
    once = notify.with_options(retry=2)
    alert = Rule(
        "alerts.to_chat",
        trigger="penstock.execution.failed",
        action=once,
        params={"urls": f"{address}/chat", "title": "{{ payload.action }}"},
    )
    await house.start(break_down, once, alert)
    with pytest.raises(ExecutionFailed):
        await house.client.run(break_down, {"n": 1}, timeout=30)
    await house.until("select 1 from execution having count(finished_at) = 2")
    await house.until("select 1 where not exists (select from unmatched) and not exists (select from outbox)")
    assert len(await house.rows("select 1 from event")) == 1
    assert {title for _, title, _ in sent()} == {"alerts.break_down"}
