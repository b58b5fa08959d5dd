"""Erlang's port mapper, one for each node: a node that asks it for another node gets the port that was written in for
that one. It may be a proxy's."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from tests.servers.containers import wait_until
from tests.servers.errors import NoServer
from tests.servers.process import Process, free_port

READY = 20.0
"""Seconds."""
REGISTER, REGISTERED = 120, (118, 121)
"""What is asked, and what is answered to those who speak the old or the new protocol."""
ERLANG_NODE, TCP, OLDEST, NEWEST = 77, 0, 5, 6


class PortMapper:
    def __init__(self, program: str, log: Path, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self._process = Process(
            [program, "-port", str(self.port), "-address", "127.0.0.1"], log=log, env=environment, spawn={}
        )
        self._written: list[socket.socket] = []
        wait_until(self._answers, "Erlang's port mapper", READY)

    def write_in(self, name: str, port: int) -> None:
        """Send clients that ask for the node of this name there. Holds for as long as the connection does."""
        short = name.partition("@")[0].encode()
        asked = struct.pack(
            f">BHBBHHH{len(short)}sH", REGISTER, port, ERLANG_NODE, TCP, NEWEST, OLDEST, len(short), short, 0
        )
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=READY)
        self._written.append(connection)
        connection.sendall(struct.pack(">H", len(asked)) + asked)
        kind, refused = connection.recv(2)
        if kind not in REGISTERED or refused:
            raise NoServer(f"Erlang's port mapper does not take {name}.")

    def close(self) -> None:
        for connection in self._written:
            connection.close()
        self._process.end(signal.SIGTERM, 10)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        return False
