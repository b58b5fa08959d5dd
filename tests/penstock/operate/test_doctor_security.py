"""Each check of `penstock doctor --security`, with an installation that passes it and one that does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.operate import secrets
from penstock.operate.access import create_token
from penstock.operate.doctor import security
from penstock.operate.doctor.finding import Finding
from penstock.settings import Settings
from penstock.store.access.tokens import Token
from penstock.store.schema import server_state
from penstock.store.schema.server_state import ConnectionPath
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY, OTHER
from tests.servers.databases import as_service

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def settings(**values: Any) -> Settings:
    return Settings(**values)


@pytest.mark.parametrize(
    ("path", "state"),
    [
        (ConnectionPath(tls=True, local=False), "ok"),
        (ConnectionPath(tls=False, local=True), "ok"),
        (ConnectionPath(tls=False, local=False), "bad"),
    ],
)
async def test_connection_to_postgresql_needs_tls_or_this_machine(
    path: ConnectionPath, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def seen(_: object) -> ConnectionPath:
        return path

    monkeypatch.setattr(server_state, "connection_path", seen)
    nothing: Any = None
    assert (await security.database_connection(nothing)).state == state


async def test_connection_of_this_machine_is_seen_as_such(database: str) -> None:
    async with Installation(database, None) as house:
        assert (await server_state.connection_path(house.session)).local


@pytest.mark.parametrize(
    ("address", "state"),
    [
        (None, "ok"),
        ("amqp://u:p@127.0.0.1/v", "ok"),
        ("amqps://u:p@rabbit.example/v", "ok"),
        ("amqp://u:p@rabbit.example/v", "bad"),
        ("amqps://u:p@one.example/v,amqp://u:p@two.example/v", "bad"),
    ],
)
def test_connection_to_rabbitmq_needs_tls_or_this_machine(address: str | None, state: str) -> None:
    url = None if address is None else SecretStr(address)
    finding = security.broker_connection(settings(broker_url=url))
    assert finding.state == state
    assert "u:p" not in finding.says


@pytest.mark.parametrize(("access", "state"), [("token", "ok"), ("open", "bad")])
def test_open_access_is_bad(access: str, state: str) -> None:
    assert security.access(settings(api_access=access)).state == state


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({}, "ok"),
        ({"api_host": "0.0.0.0", "api_address": "https://example.org"}, "ok"),
        ({"api_host": "0.0.0.0"}, "bad"),
        ({"api_host": "0.0.0.0", "api_address": "http://example.org"}, "bad"),
    ],
)
def test_api_of_other_machines_needs_tls(values: dict[str, str], state: str) -> None:
    assert security.public_address(settings(**values)).state == state


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({}, "ok"),
        ({"api_address": "https://example.org", "trusted_proxies": "10.0.0.1"}, "ok"),
        ({"api_address": "https://example.org"}, "warning"),
    ],
)
def test_proxy_needs_to_be_named(values: dict[str, str], state: str) -> None:
    assert security.proxies(settings(**values)).state == state


@pytest.mark.parametrize(("mode", "state"), [(0o600, "warning"), (0o640, "bad"), (0o604, "bad")])
def test_file_of_master_keys_is_within_reach_of_user_code(tmp_path: Path, mode: int, state: str) -> None:
    file = tmp_path / "keys"
    file.write_text(KEY)
    file.chmod(mode)
    assert security.master_key(settings(secrets_key_file=file)).state == state


def test_master_key_of_the_environment_or_a_service_is_ok(tmp_path: Path) -> None:
    for values in ({}, {"secrets_key": SecretStr(KEY)}, {"secrets_kms": "a:b"}):
        finding = security.master_key(settings(**values))
        assert finding.state == "ok"
        assert KEY not in finding.says
    assert security.master_key(settings(secrets_key_file=tmp_path / "absent")).state == "bad"


def token(name: str, *, days: float | None = 90, age: float = 1, used: float | None = None) -> Token:
    created_at = NOW - timedelta(days=age)
    return Token(
        name=name,
        scopes=["read"],
        tenants=[],
        routes=[],
        packs=[],
        created_by="ada",
        created_at=created_at,
        expires_at=None if days is None else created_at + timedelta(days=days),
        rotated_at=None,
        used_at=None if used is None else NOW - timedelta(days=used),
        old_until=None,
    )


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([], []),
        ([token("a"), token("b", age=200, used=3, days=365)], []),
        ([token("a", days=None)], ["these tokens never expire: a"]),
        ([token("a", age=91, days=365)], ["these tokens were not used for 90 days: a"]),
        (
            [token("a", age=200, used=100, days=None)],
            ["these tokens never expire: a", "these tokens were not used for 90 days: a"],
        ),
        (
            [token(f"t{n}", days=None) for n in range(7)],
            ["these tokens never expire: t0, t1, t2, t3, t4 and 2 more"],
        ),
    ],
)
def test_token_without_expiry_or_use_is_named(rows: list[Token], texts: list[str]) -> None:
    findings = security.token_findings(rows, NOW)
    assert [finding.says for finding in findings if finding.state == "warning"] == texts
    assert texts or [finding.state for finding in findings] == ["ok"]


async def test_secrets_under_two_master_keys_are_named(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await secrets.put(house.session, "public", "one", "a secret", by="ada")
        assert (await security.sealed_secrets(house.session)).state == "ok"
    async with Installation(database, None, secrets_key=f"{OTHER},{KEY}") as house:
        await secrets.put(house.session, "public", "two", "a secret", by="ada")
        assert (await security.sealed_secrets(house.session)).state == "warning"
        await secrets.rotate(house.session)
        assert (await security.sealed_secrets(house.session)).state == "ok"


async def states(house: Installation) -> dict[str, Finding]:
    return {finding.what: finding for finding in await security.examine(house.settings())}


async def test_examination_looks_at_every_check_once(database: str) -> None:
    async with Installation(database, None) as house:
        findings = await states(house)
        assert list(findings) == [
            "connection to PostgreSQL",
            "connection to RabbitMQ",
            "access to the API",
            "TLS of the API",
            "proxies",
            "master key",
            "roles",
            "tokens",
            "secrets",
        ]
        assert findings["tokens"].state == "ok"
        await create_token(house.session, "endless", ["read"], seconds=None, by="ada")
        assert (await states(house))["tokens"].state == "warning"


@pytest.mark.parametrize(
    ("service", "unread"),
    [("api", []), ("executor", ["tokens", "secrets"]), ("worker", ["roles", "tokens", "secrets"])],
)
async def test_examination_as_a_service_looks_at_all_that_it_may(
    database: str, service: str, unread: list[str]
) -> None:
    findings = await security.examine(Settings(database_url=SecretStr(as_service(database, service))))
    assert [finding for finding in findings if finding.state != "ok"] == []
    assert [finding.what for finding in findings if "may not read" in finding.says] == unread


async def test_examination_of_an_unreachable_database_is_a_finding() -> None:
    unreachable = Settings(database_url=SecretStr("postgresql://u:p@127.0.0.1:1/x"))
    findings = {finding.what: finding.state for finding in await security.examine(unreachable)}
    assert findings["postgresql"] == "bad"
    assert findings["access to the API"] == "ok"
