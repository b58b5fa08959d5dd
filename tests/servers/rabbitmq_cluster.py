"""Three RabbitMQ nodes on this machine that are one cluster, of which any may be killed, frozen, and started again."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tests.servers import management
from tests.servers.containers import wait_until
from tests.servers.errors import NoServer
from tests.servers.port_mapper import PortMapper
from tests.servers.process import Process, free_port, new_folder, remove
from tests.servers.rabbitmq import READY, find_epmd, find_script

NODES = 3
# A node that sees less than half of the others stops serving: the advice of RabbitMQ for three nodes in one place.
CONFIGURATION = """listeners.tcp.1 = 127.0.0.1:{port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {api_port}
cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
"""
NET_TICK = 5
"""Seconds after which a node that says nothing is taken for gone. RabbitMQ's default is 60."""

Way = Callable[[int, int, int], int]
"""From which node to which (their numbers), and the port of that one: the port by which it goes there."""


def straight(_from: int, _to: int, port: int) -> int:
    return port


class _Node:
    def __init__(
        self, folder: Path, name: str, everybody: Sequence[str], script: Path, home: Path, epmd: str
    ) -> None:
        """`everybody`: the names of all nodes, itself included."""
        self.name = name
        self.folder = folder
        self.port, api_port, self.dist_port = (free_port() for _ in range(3))
        self.api = management.Api("127.0.0.1", api_port, "guest", "guest")
        self._script = script
        folder.mkdir()
        (folder / "plugins").write_text("[rabbitmq_management].\n")
        (folder / "rabbitmq-env.conf").touch()
        peers = [
            f"cluster_formation.classic_config.nodes.{n} = {one}\n" for n, one in enumerate(everybody, 1)
        ]
        (folder / "rabbitmq.conf").write_text(
            CONFIGURATION.format(port=self.port, api_port=api_port) + "".join(peers)
        )
        self.environment = {
            "PATH": os.environ.get("PATH", "") + os.pathsep + "/usr/sbin:/usr/bin:/bin",
            "HOME": str(home),  # with the cookie that they share
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} "
            f"-kernel net_ticktime {NET_TICK}",
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP_SECONDS": "0",
            "RUNNING_UNDER_SYSTEMD": "1",
        }
        self.names = PortMapper(epmd, folder / "epmd", self.environment)
        self.environment["ERL_EPMD_PORT"] = str(self.names.port)
        self._server: Process | None = None

    def spawn(self) -> Process:
        self._server = Process(
            [str(self._script)], log=self.folder / "output", env=self.environment, spawn={}
        )
        return self._server

    def start(self) -> None:
        server = self.spawn()

        def ready() -> bool:
            if not server.alive():
                lines = (self.folder / "output").read_text(errors="replace").splitlines()
                said = "\n".join(line[:1000] for line in lines if "[error]" in line or line in lines[-3:])
                raise RuntimeError(f"{self.name} ended while it started.\n{said}")
            return self.api.answers() and management.greets("127.0.0.1", self.port)

        wait_until(ready, self.name, READY)

    def kill(self) -> None:
        if self._server is not None:
            self._server.end(signal.SIGKILL, 10)

    def signal(self, number: int) -> None:
        """To it and to what it has started."""
        if self._server is None or not self._server.alive():
            return
        server = psutil.Process(self._server.pid)
        for process in (server, *server.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


class RabbitMQCluster:
    """`way`: how each node gets to each other one."""

    def __init__(self, way: Way = straight) -> None:
        script, epmd = find_script(), find_epmd()
        if script is None or epmd is None:
            raise NoServer("RabbitMQ is not installed.")
        self._folder = new_folder("cluster")
        home = self._folder / "home"
        home.mkdir(mode=0o700)
        cookie = home / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(20))
        cookie.chmod(0o400)
        run = secrets.token_hex(3)
        names = [f"penstock-{run}-{number}@localhost" for number in range(NODES)]
        self.nodes = [
            _Node(self._folder / str(number), name, names, script, home, epmd)
            for number, name in enumerate(names)
        ]
        for (one, node), (other, peer) in permutations(enumerate(self.nodes), 2):
            node.names.write_in(peer.name, way(one, other, peer.dist_port))
        try:
            self._form()
        except BaseException:
            self.close()
            raise

    def _form(self) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(_Node.start, self.nodes))
        for node in self.nodes:
            self.rejoined(node)

    def _all_up(self, node: _Node) -> bool:
        nodes = self._asked(node, "nodes")
        return len(nodes) == NODES and all(one["running"] and not one.get("partitions") for one in nodes)

    def _asked(self, node: _Node, path: str) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = node.api.call("GET", path)
        except OSError:
            return []
        return found

    def add_vhost(self, name: str) -> str:
        """Its address, at all nodes."""

        def added() -> bool:  # they may still be settling, and then it takes its time
            with contextlib.suppress(OSError):
                self.nodes[0].api.add(name)
                return True
            return False

        wait_until(added, f"the virtual host {name}", READY)
        return self.url(name)

    def url(self, vhost: str, ports: Sequence[int] = ()) -> str:
        """`ports`: those by which to get to the nodes, where they are others than theirs."""
        places = (f"127.0.0.1:{port}" for port in ports or [node.port for node in self.nodes])
        return ",".join(f"amqp://guest:guest@{place}/{quote(vhost, safe='')}" for place in places)

    def whole(self) -> bool:
        """Return true if each node sees all others."""
        return all(map(self._all_up, self.nodes))

    def lost(self) -> _Node:
        """The node that the fewest see running."""
        seen = Counter(
            one["name"] for node in self.nodes for one in self._asked(node, "nodes") if one["running"]
        )
        return min(self.nodes, key=lambda node: seen[node.name])

    def leads_most(self) -> _Node:
        """The node that leads more queues than the others do."""
        leaders: Counter[str] = Counter()
        for node in self.nodes:
            if queues := self._asked(node, "queues"):
                leaders.update(queue["leader"] for queue in queues if queue.get("leader"))
                break
        if not leaders:
            return self.nodes[0]
        [(name, _)] = leaders.most_common(1)
        return next(node for node in self.nodes if node.name == name)

    def kill(self, node: _Node) -> None:
        node.kill()

    def start(self, node: _Node) -> None:
        """Returns when it is one of the cluster again."""
        node.start()
        self.rejoined(node)

    def restart(self, node: _Node) -> None:
        """Does not wait for it: it may have to wait for others itself."""
        node.kill()
        node.spawn()

    def rejoined(self, node: _Node, seconds: float = READY) -> None:
        """Wait until it is one of the cluster again. Raises TimeoutError."""
        wait_until(lambda: self._all_up(node), node.name, seconds)

    def freeze(self, node: _Node) -> None:
        """It is cut off from the others and from its clients, whose connections stay."""
        node.signal(signal.SIGSTOP)

    def thaw(self, node: _Node) -> None:
        node.signal(signal.SIGCONT)

    def close(self) -> None:
        for node in self.nodes:
            self.thaw(node)
            node.kill()
            node.names.close()
        remove(self._folder)
