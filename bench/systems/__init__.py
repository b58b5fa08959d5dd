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

    @property
    def broker(self) -> bool:
        """Whether it needs RabbitMQ."""
        return self.transport.startswith("rabbitmq")


CLASSIC = "rabbitmq-classic"
"""RabbitMQ with classic queues, in place of quorum queues."""
SYSTEMS = (
    System("penstock", "rabbitmq", peer=False),
    System("penstock", CLASSIC, peer=False, works=("chain-100", "fanout-100")),
    System("probe", "rabbitmq", peer=False),  # beside what is compared with it
    System("penstock", "postgres", peer=False),
    System("celery", "rabbitmq"),
    System("dramatiq", "rabbitmq"),
    System("taskiq", "rabbitmq"),
    System("procrastinate", "postgres"),
    System("pgqueuer", "postgres"),
    System("dbos", "postgres"),
)

DATABASE = "BENCH_DATABASE_URL"
BROKER = "BENCH_BROKER_URL"


def database_url(scheme: str = "postgresql") -> str:
    """The database of this system in this run, as a URL with `scheme`."""
    return os.environ[DATABASE].replace("postgresql", scheme, 1)


def broker_url() -> str:
    """The virtual host of this system in this run."""
    return os.environ[BROKER]


def command(program: str, *arguments: str) -> list[str]:
    """A command line of a program that was installed beside the running Python."""
    return [str(Path(sys.executable).with_name(program)), *arguments]


def module(name: str, *arguments: str) -> list[str]:
    """A command line that runs a module with the running Python."""
    return [sys.executable, "-m", name, *arguments]
