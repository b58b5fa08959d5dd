"""The secrets store: sealed under keys of their own, which are under a master key."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.errors import ConfigurationError, Conflict, InvalidInput, NotFound
from penstock.language.terms.ids import new_id
from penstock.operate import secrets
from penstock.operate.doctor import master_keys as doctor
from penstock.settings import Settings
from penstock.store.processes import heartbeats
from penstock.store.processes.heartbeats import Identity
from penstock.store.session.database import Database, Session
from penstock.store.session.master_keys import LocalKeys, held_keys, master_keys
from tests.penstock.operate.keys import KEY, OTHER

VALUE = "a secret of the shop: é"


def session_with(database: str, **given: str) -> Database:
    return Database(Settings(database_url=SecretStr(database), **given), role="test")  # type: ignore[arg-type]


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    made = session_with(database, secrets_key=KEY)
    yield made.session()
    await made.close()


class Service:
    """A key service, as a user could write it."""

    def wrap(self, data_key: bytes, context: bytes) -> tuple[str, bytes]:
        return "remote-1", data_key[::-1] + context

    def unwrap(self, key_id: str, wrapped: bytes, context: bytes) -> bytes:
        if not wrapped.endswith(context):
            raise PermissionError("another secret's key")
        return wrapped.removesuffix(context)[::-1]


async def test_it_is_read_again_and_nothing_in_the_database_has_it(session: Session) -> None:
    for _ in range(2):
        await secrets.put(session, "public", "pin", VALUE, by="ada")
    assert await secrets.reveal(session, "public", ["pin"]) == {"pin": VALUE}
    [row] = await session.fetch("select sealed || data_key as kept from secret")
    assert b"secret of the shop" not in row["kept"]
    await secrets.delete(session, "public", "pin")
    with pytest.raises(NotFound):
        await secrets.reveal(session, "public", ["pin"])
    with pytest.raises(NotFound):
        await secrets.delete(session, "public", "pin")


@pytest.mark.parametrize("column", ["sealed", "data_key"])
async def test_one_that_was_put_in_anothers_place_is_refused(session: Session, column: str) -> None:
    await secrets.put(session, "acme", "pin", VALUE, by="ada")
    await secrets.put(session, "public", "pin", "something else", by="eve")
    await session.fetch(
        f"update secret set {column} = (select {column} from secret where tenant = 'acme') where tenant = 'public'"
    )
    with pytest.raises(ConfigurationError, match="was changed after it was stored"):
        await secrets.reveal(session, "public", ["pin"])


async def test_rotation_leaves_the_old_key_without_use(database: str, session: Session) -> None:
    for n in range(3):
        await secrets.put(session, "public", f"s{n}", f"{VALUE} {n}", by="ada")
    both, newest = (session_with(database, secrets_key=keys) for keys in (f"{OTHER},{KEY}", OTHER))
    with pytest.raises(ConfigurationError, match="does not have"):
        await secrets.reveal(newest.session(), "public", ["s1"])
    assert [await secrets.rotate(both.session()) for _ in range(2)] == [3, 0]
    assert await secrets.reveal(newest.session(), "public", ["s1"]) == {"s1": f"{VALUE} 1"}
    await both.close()
    await newest.close()


async def test_a_key_service_may_hold_the_master_key(database: str) -> None:
    made = session_with(database, secrets_kms=f"{__name__}:Service")
    await secrets.put(made.session(), "public", "pin", VALUE, by="ada")
    await secrets.put(made.session(), "public", "other", VALUE, by="ada")
    assert await secrets.reveal(made.session(), "public", ["pin"]) == {"pin": VALUE}
    await made.session().fetch(
        "update secret set data_key = (select data_key from secret where name = 'other')"
    )
    with pytest.raises(ConfigurationError, match="another secret's key"):
        await secrets.reveal(made.session(), "public", ["pin"])
    await made.close()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "no master key"),
        ({"secrets_key": "c2hvcnQ="}, "not 32 bytes"),
        ({"secrets_key": "!"}, "not 32 bytes"),
        ({"secrets_key_file": "absent"}, "cannot be read"),
        ({"secrets_kms": "nowhere.at:all"}, "cannot be used"),
        ({"secrets_kms": "builtins:object"}, "no `wrap`"),
        ({"secrets_key": KEY, "secrets_kms": "a:b"}, "more ways than one"),
    ],
)
def test_an_invalid_master_key_is_reported(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        master_keys(Settings(**given))  # type: ignore[arg-type]


def test_a_file_may_hold_the_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{OTHER}\n{KEY}\n")
    keys = master_keys(Settings(secrets_key_file=file))
    assert isinstance(keys, LocalKeys)
    old = master_keys(Settings(secrets_key=SecretStr(KEY)))
    assert keys.unwrap(*old.wrap(b"x" * 32, b"c"), b"c") == b"x" * 32


@pytest.mark.parametrize(("name", "value"), [("a b", VALUE), ("pin", "abc"), ("pin", "\0" * 9), ("", VALUE)])
async def test_an_invalid_secret_is_refused(session: Session, name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        await secrets.put(session, "public", name, value, by="ada")


async def registered(database: str, name: str, keys: str | None) -> Identity:
    """Register a worker that has these master keys."""
    process = session_with(database, **({} if keys is None else {"secrets_key": keys}))
    identity = Identity(new_id(), "worker", name)
    await heartbeats.register(process.session(), identity, None)
    await process.close()
    return identity


async def test_rotation_refuses_while_a_worker_lacks_the_key(database: str, session: Session) -> None:
    await secrets.put(session, "public", "pin", VALUE, by="ada")
    await registered(database, "keyless", None)
    old = await registered(database, "w-old", KEY)
    both = session_with(database, secrets_key=f"{OTHER},{KEY}")
    with pytest.raises(Conflict, match="worker w-old") as refused:
        await secrets.rotate(both.session())
    assert "keyless" not in refused.value.message
    assert await secrets.reveal(session, "public", ["pin"]) == {"pin": VALUE}
    [finding] = await doctor.findings(both.session(), both.session().settings)
    assert (finding.state, "worker w-old" in finding.says) == ("warning", True)

    await heartbeats.leave(session, old.id)
    await registered(database, "w-new", f"{KEY},{OTHER}")
    assert await secrets.rotate(both.session()) == 1
    [finding] = await doctor.findings(both.session(), both.session().settings)
    assert finding.state == "ok"
    await both.close()


async def test_rotation_refuses_for_an_older_process(database: str, session: Session) -> None:
    await secrets.put(session, "public", "pin", VALUE, by="ada")
    await session.fetch("insert into process (id, kind, name) values ($1, 'executor', 'e-old')", new_id())
    both = session_with(database, secrets_key=f"{OTHER},{KEY}")
    with pytest.raises(Conflict, match=r"executor e-old \(an older version, keys unknown\)"):
        await secrets.rotate(both.session())
    assert await secrets.rotate(both.session(), force=True) == 1
    await both.close()


async def test_doctor_names_a_process_without_a_key_in_use(database: str, session: Session) -> None:
    await secrets.put(session, "public", "pin", VALUE, by="ada")
    await registered(database, "w-early", OTHER)
    newest = session_with(database, secrets_key=OTHER)
    [finding] = await doctor.findings(newest.session(), newest.session().settings)
    assert (finding.state, "worker w-early" in finding.says) == ("bad", True)
    await newest.close()


def test_held_keys_are_ids_and_never_keys() -> None:
    assert held_keys(Settings()) == []
    ids = held_keys(Settings(secrets_key=SecretStr(f"{OTHER},{KEY}")))
    assert ids == [LocalKeys([base64.b64decode(key)]).ids[0] for key in (OTHER, KEY)]
    assert held_keys(Settings(secrets_kms="acme.keys:Vault")) == ["kms acme.keys:Vault"]
    assert held_keys(Settings(secrets_key=SecretStr("broken"))) == []
