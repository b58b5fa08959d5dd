"""Code of users finds no credential of ours: not in the environment of its process, not in what the kernel shows of that of the
worker, and not in what it prints or returns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.language.terms.redaction import concealed, hidden_forms
from penstock.service.process_secrecy import SECRETS, credentials, hidden_secrets, without_secrets
from penstock.settings import Settings
from tests.crash.processes import Fleet
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

CODE = """
import os
from pathlib import Path
from typing import Any

from penstock import action, command_action

AT_IMPORT = dict(os.environ)


def seen(pid: object) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().replace(bytes(1), b" ").decode("utf-8", "replace")
    except OSError as error:
        return type(error).__name__


@action(pack="spy")
async def here() -> Any:
    return str([AT_IMPORT, dict(os.environ), seen("self"), os.popen("env").read()])[::-1]


@action(pack="spy", executor="process")
def apart() -> Any:
    return str([dict(os.environ), seen("self"), seen(os.getppid())])[::-1]


cat = command_action(
    "spy.cat",
    ["sh", "-c", "(env; xargs -0 echo < /proc/$PPID/environ || true) | rev"],
    options={"output": "text", "pass_env": ["PENSTOCK_DATABASE_URL", "PENSTOCK_SECRETS_KEY"]},
)
"""


async def test_user_code_finds_no_credential(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "spy.py"
    file.write_text(CODE)
    settings = house.settings()
    assert settings.database_url is not None
    database = settings.database_url.get_secret_value()
    broker = settings.broker_url.get_secret_value() if settings.broker_url else None
    log = tmp_path / "log"
    with Fleet(
        database, broker, log, program=("-m", "penstock"), forked=False, secrets_key=KEY, modules=str(file)
    ) as fleet:
        from penstock.language.loading import load_all

        await house.apply(*load_all(str(file)).actions.values())
        await house.executor()
        fleet.start("worker")
        for ref in ("spy.here", "spy.apart", "spy.cat"):
            result = await house.client.run(ref, timeout=60)
            text = "".join(
                line[::-1] for line in str(result).split("\n")
            )  # backwards, so that nothing masks it
            assert "PATH" in text, ref
            for hidden in _parts(database) | {KEY} | (_parts(broker) if broker else set()):
                assert hidden not in text, (ref, hidden)
    assert KEY not in log.read_text()


def _parts(address: str) -> set[str]:
    """The whole, and the password, where it is long enough to be told from other text."""
    password = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return {address, password} if len(password) > 8 else {address}


def test_every_secret_setting_is_withheld() -> None:
    secret = {
        f"PENSTOCK_{name.upper()}" for name, field in Settings.model_fields.items() if "Secret" in str(field)
    }
    assert secret < SECRETS
    assert without_secrets({"PATH": "/bin", **dict.fromkeys(SECRETS, "x")}) == {"PATH": "/bin"}


def test_credentials_come_back_once_definitions_are_loaded(monkeypatch: Any) -> None:
    import os

    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://u:p@h/d")
    with hidden_secrets():
        assert "PENSTOCK_DATABASE_URL" not in os.environ
    assert os.environ["PENSTOCK_DATABASE_URL"] == "postgresql://u:p@h/d"


assert sys.platform


@pytest.mark.parametrize(
    "password",
    ["worker", "penstock", "secret", "guest", "password", "2024", "20241129", "maria", "Wednesday"],
)
def test_password_that_is_a_word_leaves_data_as_they_are(password: str) -> None:
    """The words of data are not masked, but an address is."""
    settings = Settings(
        database_url=SecretStr(f"postgresql://owner:{password}@db/jobs"),
        broker_url=SecretStr(f"amqp://broker:{password}@mq/?password={password}"),
    )
    forms = hidden_forms(credentials(settings))
    data = f"the {password} of {password}s has a {password} by {password}@example.org"
    assert concealed(data, forms) == data
    for url in (settings.database_url, settings.broker_url):
        assert url is not None
        assert password not in concealed(url.get_secret_value(), forms)


@pytest.mark.parametrize(
    "password", ["s3cret-9", "correct horse battery", "abcdefghijklmnopq", "p%40ss-w0rd"]
)
def test_strong_password_is_masked_wherever_it_stands(password: str) -> None:
    settings = Settings(database_url=SecretStr(f"postgresql://owner:{password}@db/jobs"))
    forms = hidden_forms(credentials(settings))
    assert concealed(f"it is {password}!", forms) == "it is ***!"
