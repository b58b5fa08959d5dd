"""Passwords of addresses are in no error and no log; secrets among parameters in no log, error or history of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import SecretStr

from penstock import Secret, action
from penstock.errors import ConfigurationError, ConnectionFailed, ExecutionFailed
from penstock.messaging.transports.choice import make_transport
from penstock.settings import Settings
from penstock.store.session.connecting import without_password
from penstock.store.session.database import Database
from tests.crash.processes import python_path
from tests.flows.installation import Installation

PASSWORD = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/db",
        "postgresql://ada:hunter2@127.0.0.1:port/db",
        "postgresql://ada:hunter2/x@127.0.0.1:1/db",
        "postgresql://ada:x:hunter2/@127.0.0.1:1/db",
        "postgresql://ada:hunter2@[::1/db",
        "postgresql://ada:hunter2@127.0.0.1:99999/db",
        "postgresql://ada@127.0.0.1:1/db?password=hunter2",
        "postgresql://ada:hunter2@127.0.0.1:1/db?sslmode=hunter2",
        "postgresql://ada:hunter2@127.0.0.1:1,127.0.0.1:2/db",
        "postgres//ada:hunter2@127.0.0.1",
        "host=127.0.0.1 password=hunter2",
    ],
)
async def test_no_error_about_the_database_shows_a_password(url: str) -> None:
    database = Database(Settings(database_url=SecretStr(url)), role="test")
    with pytest.raises((ConnectionFailed, ConfigurationError)) as caught:
        await database.connect(timeout=5)
    assert PASSWORD not in _all_of(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "url", ["amqp://ada:hunter2@127.0.0.1:port/v", "amqp://ada:hunter2@[::1", "ada:hunter2"]
)
def test_no_error_about_the_broker_shows_a_password(url: str) -> None:
    settings = Settings(database_url=SecretStr("postgresql://"), broker_url=SecretStr(url))
    with pytest.raises(ConfigurationError) as caught:
        make_transport(Database(settings, role="test"), role="test")
    assert PASSWORD not in _all_of(caught.value)


@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("role", ["executor", "doctor"])
def test_no_process_prints_a_password(tmp_path: Path, level: str, role: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= {
        "PENSTOCK_DATABASE_URL": "postgresql://ada:hunter2@127.0.0.1:1/db",
        "PENSTOCK_BROKER_URL": "amqp://ada:hunter2@127.0.0.1:port/v",
        "PENSTOCK_LOG_LEVEL": level,
        "PYTHONPATH": python_path(),
    }
    done = subprocess.run(
        [sys.executable, "-m", "penstock", role],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert PASSWORD not in done.stdout + done.stderr


def test_a_password_too_short_to_tell_anything_does_not_garble_an_error() -> None:
    said = 'role "ada" does not exist'
    for password in ("x", "o", "ada"):
        assert without_password(said, f"postgresql://ada:{password}@127.0.0.1/db") == said
    hidden = without_password("the word hunter2", "postgresql://ada:hunter2@127.0.0.1/db")
    assert hidden == "the word ***"


def _all_of(error: BaseException) -> str:
    """An error with its hint and all that it came from, as a traceback would show it."""
    told = [repr(error), str(error), str(getattr(error, "hint", ""))]
    if error.__cause__ is not None or (not error.__suppress_context__ and error.__context__ is not None):
        told.append(_all_of(error.__cause__ or error.__context__))  # type: ignore[arg-type]
    return "\n".join(told)


@action(pack="vault")
async def open_it(key: Annotated[str, Secret], tries: int = 1) -> None:
    print(f"trying {key} {tries} times")
    raise PermissionError(f"the key {key} does not fit")


async def test_a_secret_parameter_is_in_no_log_error_or_history(house: Installation) -> None:
    await house.start(open_it)
    with pytest.raises(ExecutionFailed) as caught:
        await house.client.run("vault.open_it", {"key": "s3cr3t-key"}, timeout=60)
    assert "s3cr3t-key" not in str(caught.value)
    assert "the key *** does not fit" in str(caught.value)
    await house.until("select 1 from log_line")
    for table in ("log_line", "result", "attempt", "history", "execution"):
        rows = await house.rows(f"select to_jsonb(t)::text from {table} t")
        assert rows, table
        assert not [row[0] for row in rows if "s3cr3t-key" in row[0]], table


def test_settings_do_not_show_their_secrets() -> None:
    settings = Settings(database_url=SecretStr("postgresql://ada:hunter2@h/db"))
    assert PASSWORD not in repr(settings) + str(settings.model_dump()) + str(settings.model_dump_json())
