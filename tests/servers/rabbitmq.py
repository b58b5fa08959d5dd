"""RabbitMQ for tests: a private one that can be killed, one in Docker, or one that an address names."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from tests.servers import management
from tests.servers.containers import Container, wait_until
from tests.servers.errors import CannotHere, NoServer
from tests.servers.process import Process, free_port, new_folder, remove

READY = 120.0  # seconds; a cold start takes 5 to 10 on two busy cores

# Debian's /usr/sbin/rabbitmq-server switches to a system user and its folders; the script below it does not.
SCRIPTS = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server",
    "/usr/local/opt/rabbitmq/sbin/rabbitmq-server",
)


class RabbitMQ(Protocol):
    api_port: int

    def url(self, vhost: str = "/") -> str: ...
    @property
    def pid(self) -> int: ...
    def add_vhost(self, name: str) -> str: ...
    def drop_vhost(self, name: str) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def restart(self) -> None: ...
    def kill(self) -> None: ...
    def wipe(self) -> None: ...
    def close(self) -> None: ...


def find_script() -> Path | None:
    """Return the script that runs a RabbitMQ as the calling user, or None where RabbitMQ is not installed.

    PENSTOCK_TEST_RABBITMQ_SCRIPT names another one, to try another version.
    """
    named = os.environ.get("PENSTOCK_TEST_RABBITMQ_SCRIPT")
    if named is not None:
        if not os.access(named, os.X_OK):
            raise CannotHere(f"PENSTOCK_TEST_RABBITMQ_SCRIPT={named} is not a program")
        return Path(named)
    found = next((path for path in SCRIPTS if Path(path).exists()), None) or shutil.which("rabbitmq-server")
    return Path(found) if found and find_epmd() else None


def find_epmd() -> str | None:
    """Erlang's port mapper; Debian and Homebrew put it on the path or beside Erlang's other programs."""
    beside = "/usr/lib/erlang/bin/epmd"
    return shutil.which("epmd") or (beside if Path(beside).exists() else None)


class NativeRabbitMQ:
    """A private node with its own name, ports, port mapper, cookie, plugins and data. Runs as any user."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, advanced: str = "") -> None:
        """`advanced`: options of the application `rabbit` that only Erlang has a word for."""
        script, epmd = find_script(), find_epmd()
        if script is None or epmd is None:
            raise NoServer("RabbitMQ is not installed.")
        self._script = script
        self._folder = new_folder("rabbitmq")
        self._port, self.api_port, self._epmd_port, dist_port = (free_port() for _ in range(4))
        self.api = management.Api("127.0.0.1", self.api_port, "guest", "guest")
        (self._folder / "home").mkdir(mode=0o700)
        (self._folder / "plugins").write_text("[rabbitmq_management].\n")
        (self._folder / "rabbitmq-env.conf").touch()  # instead of the one in /etc
        (self._folder / "rabbitmq.conf").write_text(self._configuration(settings or {}))
        if advanced:
            (self._folder / "advanced.config").write_text(f"[{{rabbit, [{advanced}]}}].\n")
        self._env = {
            "PATH": os.environ.get("PATH", "") + os.pathsep + "/usr/sbin:/usr/bin:/bin",
            "HOME": str(self._folder / "home"),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"penstock-{secrets.token_hex(4)}@localhost",
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_DIST_PORT": str(dist_port),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self._folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",  # several nodes share the cores: bind none to one
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP_SECONDS": "0",
            "RUNNING_UNDER_SYSTEMD": "1",  # the script then becomes the server instead of waiting beside it
        }
        # Our own port mapper, as our child: the server would start one that outlives it.
        self._epmd = self._run([epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"])
        self._server: Process | None = None
        self.start()

    def url(self, vhost: str = "/") -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/{quote(vhost, safe='')}"

    @property
    def pid(self) -> int:
        if self._server is None:
            raise RuntimeError("this RabbitMQ is not running")
        return self._server.pid

    def add_vhost(self, name: str) -> str:
        self.api.add(name)
        return self.url(name)

    def drop_vhost(self, name: str) -> None:
        self.api.drop(name)

    def start(self) -> None:
        if self._server is not None and self._server.alive():
            return
        server = self._server = self._run([str(self._script)])

        def ready() -> bool:
            if not server.alive():
                raise RuntimeError(f"RabbitMQ ended while it started.\n{self.log}")
            return self.api.answers() and management.greets("127.0.0.1", self._port)

        wait_until(ready, "RabbitMQ", READY)

    def stop(self) -> None:
        if self._server is not None:
            self._server.end(signal.SIGTERM, 60)

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        if self._server is not None:
            self._server.end(signal.SIGKILL, 10)

    def wipe(self) -> None:
        """Lose everything on disk: vhosts, queues, messages. The node comes back empty, same address."""
        self.kill()
        remove(self._folder / "data")
        self.start()

    def close(self) -> None:
        # Nothing of it is kept, so there is nothing to write down first.
        self.kill()
        self._epmd.end(signal.SIGTERM, 10)
        remove(self._folder)

    @property
    def log(self) -> str:
        return (self._folder / "output").read_text(errors="replace")[-4000:]

    def _run(self, command: list[str]) -> Process:
        return Process(command, log=self._folder / "output", env=self._env, spawn={})

    def _configuration(self, settings: Mapping[str, str]) -> str:
        lines = {
            "listeners.tcp.1": f"127.0.0.1:{self._port}",
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": str(self.api_port),
        }
        return "".join(f"{name} = {value}\n" for name, value in (lines | dict(settings)).items())


class GivenRabbitMQ:
    """The server that PENSTOCK_TEST_BROKER_URL names, or that another process of this run started. Tests make and drop
    vhosts in it, nothing else."""

    def __init__(self, url: str, api_port: int | None = None) -> None:
        self._url = urlsplit(url)
        self.api_port = api_port or int(os.environ.get("PENSTOCK_TEST_BROKER_API_PORT", "15672"))
        self._vhosts = management.of_given_server(
            self._url.hostname or "localhost",
            unquote(self._url.username or "guest"),
            unquote(self._url.password or "guest"),
            self.api_port,
        )

    def url(self, vhost: str = "/") -> str:
        return self._url._replace(path=f"/{quote(vhost, safe='')}").geturl()

    @property
    def pid(self) -> int:
        raise _not_ours()

    def add_vhost(self, name: str) -> str:
        self._vhosts.add(name)
        return self.url(name)

    def drop_vhost(self, name: str) -> None:
        self._vhosts.drop(name)

    def start(self) -> None:
        raise _not_ours()

    def stop(self) -> None:
        raise _not_ours()

    def restart(self) -> None:
        raise _not_ours()

    def kill(self) -> None:
        raise _not_ours()

    def wipe(self) -> None:
        raise _not_ours()

    def close(self) -> None:
        """It was there before us and stays."""


class DockerRabbitMQ:
    """RabbitMQ in a container, with fixed ports so that its address survives a restart."""

    IMAGE = os.environ.get("PENSTOCK_TEST_RABBITMQ_IMAGE", "rabbitmq:4-management")

    def __init__(self) -> None:
        self._port, self.api_port = free_port(), free_port()
        self.api = management.Api("127.0.0.1", self.api_port, "guest", "guest")
        self._container = self._new()

    def url(self, vhost: str = "/") -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/{quote(vhost, safe='')}"

    @property
    def pid(self) -> int:
        return self._container.pid

    def add_vhost(self, name: str) -> str:
        self.api.add(name)
        return self.url(name)

    def drop_vhost(self, name: str) -> None:
        self.api.drop(name)

    def start(self) -> None:
        self._container.start()
        self._wait()

    def stop(self) -> None:
        self._container.signal("SIGTERM")

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        self._container.signal("SIGKILL")

    def wipe(self) -> None:
        self.close()
        self._container = self._new()

    def close(self) -> None:
        self._container.remove()

    def _new(self) -> Container:
        container = Container(self.IMAGE, ports={5672: self._port, 15672: self.api_port})
        self._wait()
        return container

    def _wait(self) -> None:
        wait_until(
            lambda: self.api.answers() and management.greets("127.0.0.1", self._port), self.IMAGE, READY
        )


def _not_ours() -> CannotHere:
    return CannotHere(
        "This server is not this process's own: tests do not stop or kill it. Use private_rabbitmq."
    )
