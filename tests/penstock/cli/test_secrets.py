"""`penstock secrets delete` names the definitions that still use the secret."""

from __future__ import annotations

import pytest

from penstock import Rule, Schedule, Trigger, action
from penstock.language.workflows import from_yaml
from penstock.operate import secrets
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.operate.keys import KEY


@action(pack="safe")
async def book(auth: str) -> None:
    """Book with {auth}: see secrets.pin."""


paid = Trigger("safe.paid")
AUTH = {"auth": "Bearer {{ secrets.pin }}"}
USERS = (
    Rule("safe.on_paid", trigger=paid, action=book, params=AUTH),
    Schedule("safe.nightly", action=book, every=3600, params={"auth": "{{secrets.pin}}"}),
    from_yaml(
        'workflow: safe.flow\ntasks:\n  first: {action: safe.book, input: {auth: "{{ secrets.pin }}"}}'
    ),
)
OTHERS = (
    Rule("safe.other_secret", trigger=paid, action=book, params={"auth": "{{ secrets.pin_2 }}"}),
    Rule("safe.plain_text", trigger=paid, action=book, params={"auth": "secrets.pin"}),
    Rule("safe.other_tenant", trigger=paid, action=book, params=AUTH, tenant="acme"),
    Rule("safe.disabled", trigger=paid, action=book, params=AUTH),
)


async def test_deleting_a_secret_names_its_enabled_users(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    await house.apply(book, paid, *USERS, *OTHERS)
    assert (await penstock("rules", "disable", "safe.disabled")).code == 0
    for name, tenant in (("pin", "public"), ("pin", "acme"), ("unused", "public")):
        assert (await penstock("secrets", "set", name, "--value", "a-long-one", "--tenant", tenant)).code == 0
    deleted = await penstock("secrets", "delete", "pin")
    text = " ".join(deleted.out.split())
    assert (
        "still use the secret pin: rule safe.on_paid, schedule safe.nightly, workflow safe.flow. Their"
        in text
    )
    assert "penstock secrets set pin --tenant public" in text
    notice = (await penstock("secrets", "delete", "pin", "--tenant", "acme", "--json")).document["notice"]
    assert "rule safe.on_paid, rule safe.other_tenant, workflow safe.flow." in notice
    assert (await penstock("secrets", "delete", "unused", "--json")).document["notice"] is None
    assert (await penstock("secrets", "delete", "pin")).code == 1


async def test_notice_about_a_deleted_secret_names_at_most_ten(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    rules = [Rule(f"safe.rule_{n:02}", trigger=paid, action=book, params=AUTH) for n in range(12)]
    await house.apply(book, paid, *rules)
    assert (await penstock("secrets", "set", "pin", "--value", "a-long-one")).code == 0
    notice = (await penstock("secrets", "delete", "pin", "--json")).document["notice"]
    assert notice.count("safe.rule_") == secrets.MOST_NAMES
    assert "safe.rule_09 and 2 more." in notice
