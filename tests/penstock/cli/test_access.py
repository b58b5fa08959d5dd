"""The users and programs that may use the HTTP API, as the command line manages them."""

from __future__ import annotations

import io
from pathlib import Path

import asyncpg
import pytest

from penstock.operate import passwords
from tests.penstock.cli.commands import penstock
from tests.penstock.operate.keys import KEY, OTHER

TRIGGER = "from penstock import Trigger\n\ncalled = Trigger('shop.called')\n"


async def test_tokens_are_made_listed_and_revoked(named: str) -> None:
    made = await penstock(
        "tokens", "create", "ci", "--scope", "operator", "--tenant", "acme", "--expires", "90d"
    )
    assert made.code == 0, made
    secret = made.out.strip()
    assert secret.startswith("pst_")
    assert "read, operate" in made.err
    again = await penstock("tokens", "create", "ci")
    assert (again.code, "there already is a token 'ci'" in again.err) == (1, True)
    listed = await penstock("tokens", "list", "--json")
    assert (listed.document["scopes"], listed.document["tenants"]) == (["read", "operate"], ["acme"])
    assert secret not in listed.out
    unknown = await penstock("tokens", "create", "x", "--scope", "operat")
    assert "operate" in unknown.err
    rotated = await penstock("tokens", "rotate", "ci", "--overlap", "2h", "--expires", "never")
    assert (rotated.code, rotated.out.strip() != secret, "is valid until" in rotated.err) == (0, True, True)
    assert (await penstock("tokens", "list", "--json")).document["expires_at"] is None
    assert (await penstock("tokens", "rotate", "cj")).code == 1
    late = await penstock("tokens", "create", "late", "--scope", "start:shop.nope")
    assert (late.code, "start:shop.nope matches no applied action" in " ".join(late.err.split())) == (0, True)
    assert "The token is valid" in " ".join(late.err.split())
    assert (await penstock("tokens", "revoke", "late")).code == 0
    assert (await penstock("tokens", "revoke", "ci")).code == 0
    assert "There are no tokens" in (await penstock("tokens", "list")).out
    assert (await penstock("tokens", "revoke", "ci")).code == 1


async def test_webhooks_are_set_listed_and_removed(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "definitions_of_webhooks.py"
    module.write_text(TRIGGER)
    assert (await penstock("apply", module)).code == 0
    words = ("webhooks", "set", "git", "--trigger", "shop.called", "--signature", "github")
    assert "needs a secret" in (await penstock(*words)).err
    secret = "a secret of sixteen"
    refused = await penstock(*words, "--secret", secret)
    assert (refused.code, "openssl rand -base64 32" in refused.err) == (1, True)
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    unfit = await penstock(*words, "--secret", secret, "--payload", "ref={{ bdy.ref }}")
    assert (unfit.code, "`bdy` is not defined" in unfit.err, "'body'" in unfit.err) == (1, True, True)
    made = await penstock(*words, "--secret", secret, "--payload", "ref={{ body.ref }}", "--json")
    assert made.document["payload"] == {"ref": "{{ body.ref }}"}
    listed = await penstock("webhooks", "list", "--json")
    assert listed.document["name"] == "git"
    assert secret not in made.out + listed.out
    assert (await penstock("secrets", "list", "--json")).out == ""
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", f"{OTHER},{KEY}")
    assert (await penstock("secrets", "rotate", "--json")).document == {"rewrapped": 1}
    assert (await penstock("webhooks", "rm", "git")).code == 0
    assert (await penstock("secrets", "rotate", "--json")).document == {"rewrapped": 0}
    assert (await penstock("webhooks", "rm", "git")).code == 1


async def test_secrets_are_set_listed_rotated_and_deleted(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_VALUE", "of the house")
    refused = await penstock("secrets", "set", "pin")
    assert (refused.code, "openssl rand -base64 32" in refused.err) == (1, True)
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    made = await penstock("secrets", "set", "pin", "--tenant", "acme")
    assert (made.code, "{{ secrets.pin }}" in made.out) == (0, True)
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", f"{OTHER},{KEY}")
    assert (await penstock("secrets", "rotate", "--json")).document == {"rewrapped": 1}
    listed = await penstock("secrets", "list", "--json")
    assert (listed.document["tenant"], listed.document["name"]) == ("acme", "pin")
    assert "of the house" not in made.out + listed.out + (await penstock("secrets", "list")).out
    assert (await penstock("secrets", "delete", "pin")).code == 1
    assert (await penstock("secrets", "delete", "pin", "--tenant", "acme")).code == 0


async def test_subscriptions_are_set_listed_enabled_and_removed(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    words = ("subscriptions", "set", "billing", "https://example.org/hook")
    made = await penstock(
        *words, "--status", "failed", "--action", "shop.*", "--label", "team=a", "--label", "zone=eu"
    )
    assert (made.code, made.out.startswith("whsec_")) == (0, True)
    assert "action shop.*, team=a, zone=eu" in (await penstock("subscriptions", "list")).out
    assert "not key=value" in (await penstock(*words, "--label", "team")).err
    again = await penstock(*words, "--json")
    assert again.document["labels"] == {}
    assert (again.document["secret"], "cancelled" in again.document["statuses"]) == (None, True)
    listed = await penstock("subscriptions", "list")
    assert "example.org/hook" in listed.out
    assert made.out.strip() not in listed.out
    assert (await penstock("subscriptions", "enable", "billing")).code == 0
    for wrong in (
        "ftp://example.org",
        "https://user:pass@example.org",
        "https://exa mple",
        "https://a:b",
        "x",
    ):
        refused = await penstock("subscriptions", "set", "odd", wrong)
        assert (refused.code, "hint" in refused.err) == (1, True), refused
    assert "did you mean" in (await penstock(*words, "--status", "fail")).err.lower()
    assert "base64" in (await penstock(*words, "--secret", "short")).err
    assert (await penstock("subscriptions", "rm", "billing")).code == 0
    assert (await penstock("subscriptions", "rm", "billing")).code == 1


async def test_users_are_made_listed_given_roles_and_deleted(named: str) -> None:
    password = ("--password", "correct horse battery")
    made = await penstock("users", "create", "ada", "--role", "operator", "--tenant", "acme", *password)
    assert (made.code, "operator of acme" in made.out) == (0, True)
    assert (await penstock("users", "create", "ada", *password)).code == 1
    assert "at least 12" in (await penstock("users", "create", "bob", "--password", "short")).err
    wider = await penstock("users", "roles", "ada", "--role", "viewer")
    assert "ada is viewer, operator of acme (before: operator of acme)." in wider.out
    again = await penstock("users", "roles", "ada", "--role", "viewer")
    assert "(nothing has changed)" in again.out
    listed = await penstock("users", "list", "--json")
    assert (listed.document["roles"], listed.document["tenants"]) == (["viewer", "operator"], ["", "acme"])
    assert "argon2" not in listed.out
    assert (await penstock("users", "password", "ada", *password)).code == 0
    assert (await penstock("users", "logout", "ada", "--json")).document["ended"] == 0
    assert (await penstock("users", "totp-off", "ada", "--json")).document == {"name": "ada", "was_on": False}
    assert (await penstock("users", "delete", "ada")).code == 0
    for gone in (
        ("logout", "ada"),
        ("totp-off", "ada"),
        ("delete", "ada"),
        ("roles", "ada", "--role", "viewer"),
        ("password", "ada", *password),
    ):
        assert (await penstock("users", *gone)).code == 1, gone


async def test_password_from_an_empty_pipe_is_refused(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    refused = await penstock("users", "create", "eve")
    assert (refused.code, "no password was given: standard input is empty" in refused.err) == (1, True)
    assert "USER_PASSWORD" in refused.err


@pytest.mark.parametrize(("piped", "accepted"), [("\n", True), ("\r\n", True), ("", True), ("\n\n", False)])
async def test_piped_password_loses_one_line_break_alone(
    named: str, monkeypatch: pytest.MonkeyPatch, piped: str, accepted: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"correct horse battery{piped}", newline=""))
    created = await penstock("users", "create", "ada")
    assert (created.code == 0) is accepted, created
    if accepted:
        connection = await asyncpg.connect(named)
        stored = await connection.fetchval("select password from person where name = 'ada'")
        await connection.close()
        assert passwords.hasher().verify(stored, "correct horse battery")
    else:
        assert "a password must be one line of text" in created.err


async def test_password_piped_twice_is_refused(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\ncorrect horse battery\n"))
    refused = await penstock("users", "create", "ada", "--role", "operator")
    assert (refused.code, "a password must be one line of text" in refused.err) == (1, True), refused
    assert "There are no users" in (await penstock("users", "list")).out
