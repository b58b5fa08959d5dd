"""Starting, sharing and stopping the embedded server of a folder."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from penstock.errors import Conflict, ConnectionFailed
from penstock.service.embedded import binaries, cluster, guard, place, postmaster, users
from penstock.service.embedded.cluster import Address, Cluster
from penstock.service.embedded.place import Place
from penstock.service.embedded.postmaster import Postmaster

READY_DEADLINE = 120.0  # seconds; recovery after a crash replays at most max_wal_size
PORT_ATTEMPTS = 3


class Server:
    """The use of a running server by this process, until `release` or the end of the process."""

    def __init__(self, dsn: str, at: Place, user: int, alone_at: float | None) -> None:
        self.dsn = dsn
        """`postgresql://...`, for the superuser `postgres` and the database `postgres`."""
        self.alone_at = alone_at
        """The time (of this machine's clock) at which this process joined, if no other process used the server then. All that
        used the server before are dead. None if another process used it."""
        self.folder = at.folder
        """The actual folder of the files: for root it may differ from the requested one."""
        self._place = at
        self._user: int | None = user
        self._once = threading.Lock()

    def release(self) -> None:
        """Release the server, and stop it if no other process uses it. A second call does nothing."""
        with self._once:
            user, self._user = self._user, None
        if user is None:
            return
        with users.locked(self._place.lock):
            users.leave(user)
            if users.nobody(self._place.users):
                _halt(self._place)


def start(folder: Path, *, fresh: bool = False) -> Server:
    """Join the server of this folder, or start it. Blocks until it accepts connections: half a second, two for a new
    folder, longer if it has to recover from a crash.

    `fresh` deletes the folder's data first. Raises Conflict if the server is in use then. Raises ConnectionFailed
    with the end of the server's log if it does not start, and ConfigurationError if the folder or this machine cannot
    run one.
    """
    at = place.find(folder)
    with users.locked(at.lock):
        users.make(at.users)
        if fresh:
            _throw_away(at)
        # The kernel closes the pipe of a killed process. A process that is only suspended still counts as a user.
        alone_at = time.time() if users.nobody(at.users) else None
        instance = _cluster(at)
        pid = postmaster.pid_of(at.data)
        if pid is not None:
            server = _join(at, pid, alone_at)
            if server is not None:
                return server
            _halt(at)
        return _start(at, instance, alone_at)


def stop(folder: Path) -> bool:
    """Stop the server of this folder, even if other processes use it. Return True if it was running."""
    if not folder.is_dir():
        return False
    at = place.find(folder)
    with users.locked(at.lock):
        return _halt(at)


def runs(folder: Path) -> bool:
    """Return True if the server of this folder runs or is being started."""
    return postmaster.pid_of(place.find(folder).data) is not None


def _start(at: Place, instance: Cluster, alone_at: float | None) -> Server:
    if not instance.exists():
        cluster.write_private(at.password, cluster.new_password())
        instance.create(at.password.read_text())
    postmaster.clear_remains(instance.data, instance.name)
    failure: ConnectionFailed | None = None
    for _ in range(PORT_ATTEMPTS):
        socket_folder = at.socket_folder()
        port = cluster.SOCKET_PORT if socket_folder else cluster.free_port()
        address = Address(socket_folder, port, at.password.read_text())
        try:
            return _spawn(at, instance, address, alone_at)
        except ConnectionFailed as error:
            failure = error
            if socket_folder is not None or "could not bind" not in error.message:
                break  # another try helps only if another process has just taken the port
    assert failure is not None
    raise failure


def _spawn(at: Place, instance: Cluster, address: Address, alone_at: float | None) -> Server:
    if at.log.exists():
        at.log.replace(at.log.with_name("server.log.1"))
    with users.first(at.users) as user:
        pid = _guard(at, command=instance.command(address))
        try:
            _ready(at, pid)
        except BaseException:
            _halt(at)
            raise
    return Server(address.dsn(), at, user, alone_at)


def _join(at: Place, pid: int, alone_at: float | None) -> Server | None:
    """Become a user of the live server; return None if it cannot be reached and has to be started again."""
    user = users.join(at.users)
    if user is None:
        with users.first(at.users) as user:
            _guard(at, adopt=pid)
    try:
        live = _ready(at, pid)
    except ConnectionFailed:
        users.leave(user)
        return None
    address = Address(live.socket_folder, live.port, at.password.read_text())
    if not _listens(address):
        users.leave(user)
        return None
    return Server(address.dsn(), at, user, alone_at)


def _ready(at: Place, pid: int) -> Postmaster:
    return postmaster.wait_until_ready(
        at.data, at.log, pid=pid, alive=lambda: postmaster.lives(pid, at.data), seconds=READY_DEADLINE
    )


def _listens(address: Address) -> bool:
    """Return True if a server accepts connections at the address. False does not mean that none runs: a cleanup may
    have deleted its socket file."""
    family = socket.AF_UNIX if address.socket_folder else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            if address.socket_folder:
                probe.connect(str(address.socket_folder / f".s.PGSQL.{address.port}"))
            else:
                probe.connect(("127.0.0.1", address.port))
        except OSError:
            return False
    return True


def _guard(at: Place, *, command: list[str] | None = None, adopt: int | None = None) -> int:
    """Start the guard, which starts or adopts the server. Return the server's pid."""
    task = {
        "command": command,
        "pid": adopt,
        "users": str(at.users),
        "lock": str(at.lock),
        "log": str(at.log),
        "env": cluster.environment(),
        "spawn": at.account.spawn,
    }
    # The guard has a session of its own, so that Ctrl-C in a terminal ends the program and not the server.
    with open(at.log, "a") as log:
        run = subprocess.run(
            [sys.executable, "-I", "-S", guard.__file__],
            input=json.dumps(task),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            cwd="/",
        )
    if not run.stdout.strip().isdigit():
        raise ConnectionFailed(
            f"PostgreSQL could not be started.\n{postmaster.tail(at.log)}", hint=f"See {at.log}"
        )
    return int(run.stdout)


def _halt(at: Place) -> bool:
    pid = postmaster.pid_of(at.data)
    if pid is None:
        return False

    def ended(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while postmaster.is_postmaster(pid, at.data):
            if time.monotonic() > deadline:
                return False
            time.sleep(postmaster.POLL)
        return True

    guard.halt(pid, ended)
    return True


def _throw_away(at: Place) -> None:
    if not users.nobody(at.users):
        raise Conflict(
            f"The data in {at.folder} cannot be deleted: another process is using it.",
            hint="Stop the other `penstock dev` first.",
        )
    _halt(at)
    shutil.rmtree(at.data, ignore_errors=True)


def _cluster(at: Place) -> Cluster:
    marker = at.data / "PG_VERSION"
    major = int(marker.read_text()) if marker.is_file() else None
    usable = binaries.reachable(binaries.find(major=major), at.account, at.folder)
    return Cluster(at.data, usable, at.account)
