"""Roles of PostgreSQL, one for each service, with the rights that the service needs and no others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

from penstock.errors import ConfigurationError, NotAllowed
from penstock.settings import Settings
from penstock.store.schema import grants
from penstock.store.schema.rights import SERVICES
from penstock.store.session.database import Session

ROUNDS = 4096
"""Rounds of SCRAM-SHA-256, PostgreSQL's own default."""


def named(prefix: str) -> dict[str, str]:
    """Return the role of each service, such as `penstock_worker`."""
    return {service: f"{prefix}_{service}" for service in SERVICES}


@dataclass(frozen=True, slots=True)
class MadeRole:
    """A role and its service. `address` is PENSTOCK_DATABASE_URL for a role that was just created: its password is
    shown only then."""

    service: str
    role: str
    address: str | None


async def apply(
    session: Session, settings: Settings, roles: Mapping[str, str], passwords: Mapping[str, str] = {}
) -> list[MadeRole]:
    """Create the missing roles, and grant all of them their rights. `passwords` are by service: without one, a new role
    gets a random password, and an existing role keeps its own. Raises NotAllowed if the role of this session may not do
    that."""
    made_roles: list[MadeRole] = []
    try:
        async with session.transaction() as tx:
            for service, role in roles.items():
                address, password = None, passwords.get(service)
                if not await grants.exists(tx, role):
                    password = password or secrets.token_urlsafe(24)
                    await grants.create(tx, role, verifier(password))
                    address = with_user(settings, role, password)
                elif password is not None:
                    await grants.set_password(tx, role, verifier(password))
                await grants.give(tx, service, role)
                made_roles.append(MadeRole(service, role, address))
    except NotAllowed as error:
        raise NotAllowed(
            error.message,
            hint="Run this as the owner of the schema with CREATEROLE, or let an administrator run what `penstock roles` prints.",
        ) from error
    return made_roles


def with_user(settings: Settings, role: str, password: str) -> str:
    """Return the address of the database for another user."""
    if settings.database_url is None:
        raise ConfigurationError("no database is named", hint="Set PENSTOCK_DATABASE_URL.")
    parts = urlsplit(settings.database_url.get_secret_value())
    place = parts.netloc.rpartition("@")[2]
    user = f"{quote(role, safe='')}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{place}"))


def verifier(password: str) -> str:
    """Return the hash of a password that PostgreSQL stores, so that the password itself appears in none of its logs."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
    client, server = (hmac.digest(salted, f"{side} Key".encode(), "sha256") for side in ("Client", "Server"))
    encoded = [base64.b64encode(part).decode() for part in (salt, hashlib.sha256(client).digest(), server)]
    return f"SCRAM-SHA-256${ROUNDS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
