"""The servers that the other tests stand on do what those tests will ask of them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aio_pika
import asyncpg
import psutil
import pytest

from tests.crash.processes import ROOT
from tests.servers import databases, one_for_all, rabbitmq
from tests.servers.errors import CannotHere
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.process import free_port
from tests.servers.rabbitmq import RabbitMQ


async def test_each_test_gets_a_database_of_its_own(database: str, empty_database: str) -> None:
    for dsn in (database, empty_database):
        connection = await asyncpg.connect(dsn)
        await connection.execute("CREATE TABLE penstock_test_only_here ()")
        await connection.close()


async def test_each_test_gets_a_vhost_of_its_own(vhost: str) -> None:
    connection = await aio_pika.connect(vhost)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q", durable=True, arguments={"x-queue-type": "quorum"})
        await channel.default_exchange.publish(aio_pika.Message(b"hello"), "q")
        message = await queue.get(timeout=10)
        assert message is not None
        await message.ack()


async def test_pgbouncer_pools_by_transaction(pgbouncer: PgBouncer, database: str) -> None:
    name = database.rsplit("/", 1)[1]
    first, second = [await asyncpg.connect(pgbouncer.dsn(name), statement_cache_size=0) for _ in range(2)]
    try:
        assert await first.fetchval("SELECT pg_backend_pid()") == await second.fetchval(
            "SELECT pg_backend_pid()"
        )
    finally:
        await first.close()
        await second.close()


async def test_a_private_postgres_keeps_its_commits_when_it_is_killed(
    private_postgres: Callable[[], Postgres],
) -> None:
    server = private_postgres()
    connection = await asyncpg.connect(server.dsn())
    await connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    before = server.pid
    server.kill()
    connection.terminate()
    server.start()
    assert server.pid != before
    for immediate in (True, False):
        server.stop(immediate=immediate)
        server.start()
        connection = await asyncpg.connect(server.dsn())
        assert await connection.fetchval("SELECT one FROM kept") == 1
        await connection.close()


async def test_a_private_rabbitmq_survives_a_kill_and_forgets_when_wiped(
    private_rabbitmq: Callable[[], RabbitMQ],
) -> None:
    server = private_rabbitmq()
    url = server.add_vhost("v")
    await _declare(url)
    await asyncio.sleep(5)  # RabbitMQ 3.10 writes down a new queue only seconds later
    server.kill()
    server.start()
    connection = await aio_pika.connect(url)
    async with connection:
        queue = await (await connection.channel()).declare_queue("q", passive=True)
        message = await queue.get(timeout=30)
        assert message is not None
        assert message.body == b"kept"
    server.wipe()
    server.add_vhost("v")
    connection = await aio_pika.connect(url)
    async with connection:
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await (await connection.channel()).declare_queue("q", passive=True)


def test_a_rabbitmq_that_another_process_started_is_used_while_it_answers(
    rabbitmq_server: RabbitMQ, tmp_path: Path
) -> None:
    one_for_all.tell(tmp_path, rabbitmq_server)
    with one_for_all.rabbitmq(tmp_path) as found, one_for_all.rabbitmq(tmp_path) as again:
        assert found.url() == again.url() == rabbitmq_server.url()
        name = databases.new_name()
        found.add_vhost(name)
        again.drop_vhost(name)
    assert rabbitmq_server.url() in (tmp_path / one_for_all.ADDRESS).read_text()  # no test here may end it
    gone = json.dumps([f"amqp://guest:guest@127.0.0.1:{free_port()}/", free_port()])
    (tmp_path / one_for_all.ADDRESS).write_text(gone)
    assert one_for_all.found(tmp_path) is None


async def _declare(url: str) -> None:
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue("q", durable=True, arguments={"x-queue-type": "quorum"})
        message = aio_pika.Message(b"kept", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, "q")


KILLED_RUN = """
import os, signal
from tests.servers.postgres import NativePostgres
server = NativePostgres()
print(server.pid, server._folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_killed_run_leaves_no_server_and_no_folder() -> None:
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_RUN], cwd=os.getcwd(), stdout=subprocess.PIPE, text=True
    )
    pid, folder = run.stdout.split()
    assert folder
    for _ in range(600):
        if not psutil.pid_exists(int(pid)) and not await asyncio.to_thread(os.path.exists, folder):
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"server {pid} or {folder} outlived its run")


def test_free_ports_differ_from_one_another() -> None:
    assert len({free_port() for _ in range(1000)}) == 1000


def test_no_two_processes_are_given_the_same_port() -> None:
    """Any two of these, drawing as they like, would have some forty in common."""
    draw = "from tests.servers.process import free_port; print(*(free_port() for _ in range(1000)), flush=True); input()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", draw], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    try:
        given = [
            port for one in processes if one.stdout is not None for port in one.stdout.readline().split()
        ]
    finally:
        for process in processes:
            process.communicate(b"\n")
    assert len(set(given)) == len(given) == 3000


def test_another_rabbitmq_is_named_and_never_silently_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_RABBITMQ_SCRIPT", sys.executable)
    assert str(rabbitmq.find_script()) == sys.executable
    monkeypatch.setenv("PENSTOCK_TEST_RABBITMQ_SCRIPT", f"{sys.executable}-of-another-version")
    with pytest.raises(CannotHere, match="PENSTOCK_TEST_RABBITMQ_SCRIPT"):
        rabbitmq.find_script()
