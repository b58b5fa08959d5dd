"""A service that starts before its servers: it says at once what it waits for, and ends when it was told to."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from penstock.errors import ConfigurationError
from penstock.service import startup
from penstock.service.startup import assembled_when_ready
from penstock.settings import Settings


def _address(database: str, fault: str) -> str:
    address = urlsplit(database)
    where = address.netloc.rpartition("@")[2]
    match fault:
        case "closed port":
            return "postgresql://ada:hunter2@127.0.0.1:1/db"
        case "unknown database":
            return f"{database}_gone"
        case _:
            return address._replace(netloc=f"ada_gone:hunter2@{where}").geturl()


@pytest.mark.parametrize(
    ("fault", "why", "hint"),
    [
        ("closed port", "PostgreSQL at 127.0.0.1:1/db does not answer", "Start PostgreSQL"),
        ("unknown database", "_gone", "createdb"),
        ("unknown role", "ada_gone", "Correct user and password"),
    ],
)
async def test_a_database_that_cannot_be_used_is_told_in_one_line_and_once_more_a_minute_later(
    database: str, monkeypatch: pytest.MonkeyPatch, fault: str, why: str, hint: str
) -> None:
    settings = Settings(database_url=SecretStr(_address(database, fault)))

    async def start() -> None:
        async with assembled_when_ready(settings, role="executor", pause=0.01):
            pass

    with capture_logs() as logs:
        starting = asyncio.create_task(start())
        while not logs:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        [line] = logs
        monkeypatch.setattr(startup, "AGAIN", 0.0)  # the minute is over
        while len(logs) == 1:
            await asyncio.sleep(0.01)
        starting.cancel()
    assert why in line["reason"]
    assert hint in line["hint"]
    assert line["next_try"] == "in 0.01 s"
    assert "hunter2" not in str(line)


async def test_an_address_that_is_none_is_not_waited_for() -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_DATABASE_URL"):
        async with assembled_when_ready(Settings(database_url=SecretStr("not a url")), role="executor"):
            pass


async def test_the_exit_code_says_that_the_servers_were_not_ready(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", empty_database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    command = [sys.executable, "-m", "penstock", "executor", "--wait", "1s"]
    said = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 3
    assert "Traceback" not in said.stderr
    assert "not ready after 1 s" in said.stderr
