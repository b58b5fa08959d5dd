"""The secrets of webhooks and subscriptions lie sealed: no table has them, and each service reaches what it signs or checks."""

from __future__ import annotations

import asyncpg
import pytest

from penstock.errors import ConfigurationError, NotFound
from penstock.operate import secrets, signing_secrets, subscriptions, webhooks
from penstock.store.session.database import Session
from penstock_api.webhooks.unreadable_secrets import concealed_from_caller
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY, OTHER
from tests.servers.databases import as_service

SECRET = "c2VjcmV0LW9mLXdlYmhvb2tz"
TABLES = "select c.oid::regclass::text from pg_class c where relnamespace = 'public'::regnamespace and relkind = 'r'"


async def signed(session: Session) -> None:
    await webhooks.put(
        session, "git", trigger="shop.order_placed", signature="github", secret=SECRET, by="ada"
    )
    await subscriptions.put(
        session, "billing", url="https://example.org/", secret=f"whsec_{SECRET}", by="ada"
    )


async def test_no_table_holds_a_signing_secret(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
        texts = [
            str(row[0])
            for (table,) in await house.rows(TABLES)
            for row in await house.rows(f"select t::text from {table} t")
        ]
        assert any("webhook:git" in text for text in texts)
        leaks = (SECRET, SECRET.encode().hex())
        assert not [text for text in texts if any(leak in text for leak in leaks)]
        assert await signing_secrets.of_webhook(house.session, "git") == SECRET


async def test_signing_secrets_follow_the_rotation_of_master_keys(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
    async with Installation(database, None, secrets_key=f"{OTHER},{KEY}") as house:
        assert await secrets.rotate(house.session) == 2
    async with Installation(database, None, secrets_key=OTHER) as house:
        assert await signing_secrets.of_webhook(house.session, "git") == SECRET
        [sealed] = (await signing_secrets.of_subscriptions(house.session, ["billing"])).values()
        assert await signing_secrets.opened(house.settings(), sealed) == f"whsec_{SECRET}"


async def test_caller_of_a_webhook_does_not_see_a_master_key(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
    async with Installation(database, None, secrets_key=OTHER) as house:
        [sealed] = await house.rows("select master_key from secret where name = 'webhook:git'")
        with pytest.raises(ConfigurationError, match=sealed["master_key"]) as raised:
            await signing_secrets.of_webhook(house.session, "git")
        assert "the newest key first" in str(raised.value.hint)
        with pytest.raises(ConfigurationError) as concealed, concealed_from_caller():
            await signing_secrets.of_webhook(house.session, "git")
        assert sealed["master_key"] not in f"{concealed.value.message} {concealed.value.hint}"


async def test_no_action_is_given_a_signing_secret(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
        for tenant in ("public", "webhook"):
            with pytest.raises(NotFound):
                await secrets.reveal(house.session, tenant, ["git"])


async def test_executor_reaches_the_secrets_of_subscriptions_alone(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
        await secrets.put(house.session, "public", "pin", "a secret", by="ada")
    connection = await asyncpg.connect(as_service(database, "executor"))
    rows = await connection.fetch(
        "select name from secrets_of_subscriptions($1)", ["billing", "git", "webhook:git", "pin", "../pin"]
    )
    assert [row["name"] for row in rows] == ["subscription:billing"]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetch("select * from secret")
    await connection.close()


async def test_removal_forgets_the_signing_secret(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        await signed(house.session)
        await webhooks.remove(house.session, "git")
        await subscriptions.remove(house.session, "billing")
        assert await house.rows("select 1 from secret") == []


async def test_signing_secret_needs_a_master_key(database: str) -> None:
    async with Installation(database, None) as house:
        await house.apply(*shop.ALL)
        with pytest.raises(ConfigurationError, match="no master key"):
            await signed(house.session)
        assert await house.rows("select 1 from webhook") == []
