"""Clusters of Dask and Ray, made of their own programs on this machine, on loopback and free ports."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.process import Process, free_port, new_folder, remove

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
"""Seconds that a cluster may take to start."""


def environment() -> dict[str, str]:
    """Return the environment of its processes, which find the code of this repository, and send nothing elsewhere."""
    path = os.pathsep.join(str(ROOT / part) for part in ("common", "services", "."))
    return {**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}


class DaskCluster:
    """A scheduler and workers, each a process of its own. `said`: all that they have logged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        self._scheduler = self._run(
            "dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )
        _until(lambda: _answers(port), self._scheduler, self.said)

    def add_worker(self) -> Process:
        """One with two threads; without a nanny, so that one that is killed stays away."""
        return self._run(
            "dask_worker", self.address, "--no-nanny", "--nthreads", "2", "--no-dashboard",
            "--host", "127.0.0.1", "--local-directory", str(self._folder),
        )  # fmt: skip

    def stop(self) -> None:
        for process in self._processes:
            process.end(signal.SIGKILL, 10)

    def said(self) -> str:
        return (self._folder / "log").read_text()

    def _run(self, program: str, *words: str) -> Process:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *words]
        process = Process(command, log=self._folder / "log", env=environment(), spawn={})
        self._processes = [*getattr(self, "_processes", ()), process]
        return process


class RayCluster:
    """A node that takes what it needs on free ports. `address` is for a driver on this machine, `outside` for one that is not in
    the cluster. Ray takes `127.0.0.1` for another name of the machine, and listens there; of 127.0.0.2 it does not know."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, outside = free_port(), free_port()
        self.address, self.outside = f"127.0.0.2:{port}", f"ray://127.0.0.2:{outside}"
        command = [
            str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--node-ip-address", "127.0.0.2",
            "--port", str(port), "--ray-client-server-port", str(outside), "--num-cpus", "4", "--include-dashboard", "false",
            # Ports that the kernel chooses. Ray's own range for workers holds many ports that `free_port` returns.
            "--min-worker-port", "0", "--max-worker-port", "0",
            "--object-store-memory", "80000000", "--temp-dir", str(folder), "--disable-usage-stats",
        ]  # fmt: skip
        self._node = Process(command, log=folder / "log", env=environment(), spawn={})
        _until(lambda: "Ray runtime started" in self.said(), self._node, self.said)

    def stop(self) -> None:
        self._node.end(signal.SIGTERM, 30)

    def said(self) -> str:
        return (self._folder / "log").read_text()


@contextmanager
def dask_cluster(workers: int = 1) -> Iterator[DaskCluster]:
    folder = new_folder("dask")
    cluster = DaskCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()
        remove(folder)


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    folder = new_folder("ray")
    cluster = RayCluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
        remove(folder)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _until(ready: Callable[[], bool], process: Process, said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline or not process.alive():
            process.end(signal.SIGKILL, 10)
            raise AssertionError(f"the cluster does not start: {said()}")
        time.sleep(0.1)
