"""The requests of tests to RabbitMQ beside messages: vhosts made and dropped, state looked at."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import socket
import subprocess
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from tests.servers.errors import NoServer


class Vhosts(Protocol):
    def add(self, name: str) -> None: ...
    def drop(self, name: str) -> None: ...


@dataclass(frozen=True)
class Api:
    """The HTTP API of the management plugin: a vhost in 50 ms, where rabbitmqctl takes two seconds."""

    host: str
    port: int
    user: str
    password: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request below /api/ and return the decoded answer. Raises OSError where it is refused."""
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(
                method, f"/api/{path}", json.dumps(body) if body is not None else None, headers
            )
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"RabbitMQ's management API broke off: {error!r}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise OSError(f"RabbitMQ's management API answered {answer.status} to {method} {path}: {text!r}")
        return json.loads(text) if text else None

    def answers(self) -> bool:
        try:
            self.call("GET", "vhosts")
        except OSError:
            return False
        return True

    def add(self, name: str) -> None:
        self.call("PUT", f"vhosts/{quote(name, safe='')}")
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self.call("PUT", f"permissions/{quote(name, safe='')}/{quote(self.user, safe='')}", everything)

    def drop(self, name: str) -> None:
        self.call("DELETE", f"vhosts/{quote(name, safe='')}")


@dataclass(frozen=True)
class Ctl:
    """rabbitmqctl, for a server on this machine that has no management plugin."""

    user: str

    def add(self, name: str) -> None:
        self._run("add_vhost", name)
        self._run("set_permissions", "-p", name, self.user, ".*", ".*", ".*")

    def drop(self, name: str) -> None:
        self._run("delete_vhost", name)

    def _run(self, *arguments: str) -> None:
        run = subprocess.run(
            ["rabbitmqctl", "-q", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if run.returncode != 0:
            raise NoServer(f"rabbitmqctl {arguments[0]} failed: {run.stderr.strip() or run.stdout.strip()}")


def of_given_server(host: str, user: str, password: str, api_port: int) -> Vhosts:
    """Return the maker of vhosts on a server that only an address names."""
    api = Api(host, api_port, user, password)
    if api.answers():
        return api
    if host in ("127.0.0.1", "localhost", "::1") and shutil.which("rabbitmqctl"):
        return Ctl(user)
    raise NoServer(
        f"PENSTOCK_TEST_BROKER_URL names a server whose management API does not answer at {host}:{api_port}; "
        "tests need it to make a vhost each.\nType: rabbitmq-plugins enable rabbitmq_management\n"
        "or set PENSTOCK_TEST_BROKER_API_PORT."
    )


def greets(host: str, port: int) -> bool:
    """Return true if an AMQP server answers the protocol header there; the open port alone says too little."""
    try:
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return connection.recv(1) == b"\x01"  # a method frame: connection.start
    except OSError:
        return False
