"""People, their roles and sessions. What the columns are for: migrations/versions/0001/people.sql."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

NOW = text("clock_timestamp()")

person = Table(
    "person",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("password", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=NOW),
    Column("totp_since", INSTANT),
    Column("totp_step", BigInteger, nullable=False, server_default=text("0")),
)

recovery_code = Table(
    "recovery_code",
    METADATA,
    Column("person", UUID, ForeignKey("person.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
)

person_role = Table(
    "person_role",
    METADATA,
    Column("person", UUID, ForeignKey("person.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, primary_key=True),
    Column("tenant", Text, primary_key=True, server_default=text("''")),
)

person_session = Table(
    "person_session",
    METADATA,
    Column("digest", LargeBinary, primary_key=True),
    Column("id", UUID, nullable=False, unique=True, server_default=text("gen_random_uuid()")),
    Column("person", UUID, ForeignKey("person.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=NOW),
    Column("seen_at", INSTANT, nullable=False, server_default=NOW),
    Column("expires_at", INSTANT, nullable=False),
    Column("address", Text, nullable=False, server_default=text("''")),
    Column("browser", Text, nullable=False, server_default=text("''")),
    Column("needs_code", Boolean, nullable=False, server_default=text("false")),
    Column("id_token", Text),
    Index("person_session_person", "person"),
)

known_address = Table(
    "known_address",
    METADATA,
    Column("person", UUID, ForeignKey("person.id", ondelete="CASCADE"), primary_key=True),
    Column("address", Text, primary_key=True),
    Column("seen_at", INSTANT, nullable=False, server_default=NOW),
)

login_failure = Table(
    "login_failure",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=NOW),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Index("login_failure_name", "name", "at"),
    Index("login_failure_address", "address", "at"),
)
