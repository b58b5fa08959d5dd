"""The checks of `penstock doctor --security`, in the order of docs/hardening.md."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from penstock.errors import NotAllowed, PenstockError
from penstock.language.terms.setting_values import LOOPBACK
from penstock.operate.doctor import installation, postgres, roles
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store.access import secrets, tokens
from penstock.store.access.tokens import Token
from penstock.store.schema import server_state
from penstock.store.session import clock
from penstock.store.session.database import Session

UNUSED_FOR = timedelta(days=90)
"""The time without use after which a token should be revoked."""
READABLE_BY_OTHERS = 0o077
SHOWN = 5


async def examine(settings: Settings) -> list[Finding]:
    """Check the settings of this process, and the database that they name. A fault is a finding, never an error."""
    findings = [
        broker_connection(settings),
        access(settings),
        public_address(settings),
        proxies(settings),
        master_key(settings),
    ]
    database, reached = await postgres.reach(settings)
    if database is None:
        return [reached, *findings]
    session = database.session()
    try:
        findings.insert(0, await database_connection(session))
        if await installation.is_migrated(session):
            findings += await as_far_as_allowed("roles", roles.findings(session))
            findings += await as_far_as_allowed("tokens", stored_tokens(session))
            findings += await as_far_as_allowed("secrets", stored_secrets(session))
    except PenstockError as error:
        fix = error.hint or "Run this command as the schema's owner."
        findings.append(warning("database", f"this role may not read these tables: {error.message}", fix))
    finally:
        await database.close()
    return findings


async def as_far_as_allowed(subject: str, findings: Awaitable[list[Finding]]) -> list[Finding]:
    """Return these findings. If the role of this process may not read what they are about, return one that says so: that
    is not a fault, since most services need no credentials."""
    try:
        return await findings
    except NotAllowed:
        return [
            ok(
                subject,
                "this role may not read them. Run the command also with the database address of the API or of the owner",
            )
        ]


async def database_connection(session: Session) -> Finding:
    """Check that the connection to PostgreSQL is encrypted, unless it stays on this machine."""
    path = await server_state.connection_path(session)
    if path.tls:
        return ok("connection to PostgreSQL", "it is encrypted")
    if path.local:
        return ok("connection to PostgreSQL", "the connection stays on this machine")
    return bad(
        "connection to PostgreSQL",
        "the connection crosses a network without TLS",
        "Add `?sslmode=verify-full` to PENSTOCK_DATABASE_URL, and let PostgreSQL accept only `hostssl` "
        "connections (pg_hba.conf).",
    )


def broker_connection(settings: Settings) -> Finding:
    """Check that each address of the broker is encrypted, unless it is one of this machine."""
    if settings.broker_url is None:
        return ok("connection to RabbitMQ", "there is no broker")
    plain = [
        parts.hostname or "?"
        for address in settings.broker_url.get_secret_value().split(",")
        if (parts := urlsplit(address.strip())).scheme != "amqps" and parts.hostname not in LOOPBACK
    ]
    if not plain:
        return ok("connection to RabbitMQ", "each connection is encrypted, or stays on this machine")
    return bad(
        "connection to RabbitMQ",
        f"these connections cross a network without TLS: {', '.join(plain)}",
        "Use amqps:// in PENSTOCK_BROKER_URL, and close RabbitMQ's listener without TLS.",
    )


def access(settings: Settings) -> Finding:
    """Check that the API requires a token or a session."""
    if settings.api_access == "token":
        return ok("access to the API", "every request needs a token or a session")
    return bad(
        "access to the API",
        "every program on this machine has all rights",
        "Set PENSTOCK_API_ACCESS=token, and create tokens: penstock tokens create NAME.",
    )


def public_address(settings: Settings) -> Finding:
    """Check that callers from other machines reach the API over TLS."""
    if settings.api_host in LOOPBACK and settings.api_address is None:
        return ok("TLS of the API", "the API only answers programs on this machine")
    if (settings.api_address or "").startswith("https://"):
        return ok("TLS of the API", f"callers use the address {settings.api_address}")
    return bad(
        "TLS of the API",
        "callers on other machines send tokens and passwords without encryption",
        "Put a proxy with TLS in front of the API, and set PENSTOCK_API_ADDRESS=https://... (docs/api.md, Behind a proxy).",
    )


def proxies(settings: Settings) -> Finding:
    """Check that a proxy in front of the API is configured, so that failed sign-ins count by the addresses of their
    callers."""
    if settings.api_address is None or settings.trusted_proxies:
        return ok(
            "proxies", settings.trusted_proxies or "PENSTOCK_API_ADDRESS is not set, so no proxy is expected"
        )
    return warning(
        "proxies",
        "PENSTOCK_API_ADDRESS suggests a proxy, but no proxy is trusted: all failed sign-ins count as those of one address",
        "Set PENSTOCK_TRUSTED_PROXIES to the proxy's address, and let the proxy set X-Forwarded-For.",
    )


def master_key(settings: Settings) -> Finding:
    """Check that user code cannot read the master key from a file."""
    file = settings.secrets_key_file
    if file is None:
        place = (
            "a key service" if settings.secrets_kms else "the environment" if settings.secrets_key else None
        )
        return ok("master key", f"the key comes from {place}" if place else "none is configured")
    try:
        mode = file.stat().st_mode
    except OSError as error:
        return bad(
            "master key",
            f"{file} cannot be checked: {error.strerror}",
            "Correct PENSTOCK_SECRETS_KEY_FILE.",
        )
    if mode & READABLE_BY_OTHERS:
        return bad("master key", f"other users of this machine can read {file}", f"Run: chmod 600 {file}")
    return warning(
        "master key",
        f"the code of actions that runs as this user can read {file}",
        "Set the key in PENSTOCK_SECRETS_KEY instead, which services remove from their environment before "
        "they import the code of actions. Or use a key service.",
    )


def token_findings(rows: list[Token], now: datetime) -> list[Finding]:
    """Check that each token expires, and that each is in use."""
    endless = [token.name for token in rows if token.expires_at is None]
    unused = [token.name for token in rows if now - (token.used_at or token.created_at) > UNUSED_FOR]
    findings = []
    if endless:
        findings.append(
            warning(
                "tokens",
                f"these tokens never expire: {_some(endless)}",
                "Rotate each of these tokens, which sets an expiry: penstock tokens rotate NAME.",
            )
        )
    if unused:
        findings.append(
            warning(
                "tokens",
                f"these tokens were not used for {UNUSED_FOR.days} days: {_some(unused)}",
                "Revoke them: penstock tokens revoke NAME.",
            )
        )
    return findings or [ok("tokens", f"{len(rows)} tokens: each has an expiry, and all are in use")]


async def stored_tokens(session: Session) -> list[Finding]:
    """Check the stored tokens."""
    return token_findings(await tokens.listed(session), await clock.now(session))


async def stored_secrets(session: Session) -> list[Finding]:
    """Check the stored secrets."""
    return [await sealed_secrets(session)]


async def sealed_secrets(session: Session) -> Finding:
    """Check that all secrets are under one master key, so that older ones can be deleted."""
    keys = await secrets.keys_in_use(session)
    if len(keys) <= 1:
        return ok(
            "secrets", f"{sum(key.secrets for key in keys)} secrets, encrypted with at most one master key"
        )
    return warning(
        "secrets",
        f"the secrets are encrypted with {len(keys)} master keys: {', '.join(key.master_key for key in keys)}",
        "Run `penstock secrets rotate`, and remove the older keys.",
    )


def _some(names: list[str]) -> str:
    hidden_count = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {hidden_count} more" if hidden_count > 0 else "")
