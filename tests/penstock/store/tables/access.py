"""Tokens and webhooks of the HTTP API. What the columns are for: migrations/versions/0001/access.sql."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

api_token = Table(
    "api_token",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("tenants", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("created_by", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("expires_at", INSTANT),
    Column("rotated_at", INSTANT),
    Column("used_at", INSTANT),
    Column("old_digest", LargeBinary, unique=True),
    Column("old_until", INSTANT),
    Column("routes", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("packs", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
)

saved_view = Table(
    "saved_view",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("owner", Text),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("filters", JSONB, nullable=False),
    Column("tenants", ARRAY(Text)),
    Column("shared", Boolean, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("changed_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("changed_by", Text, nullable=False),
    UniqueConstraint("owner", "name"),
    Index("saved_view_shared", "name", postgresql_where=text("shared")),
)

secret = Table(
    "secret",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("data_key", LargeBinary, nullable=False),
    Column("master_key", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)

signing_key = Table(
    "signing_key",
    METADATA,
    Column("id", SmallInteger, primary_key=True, server_default=text("1")),
    Column("key", LargeBinary, nullable=False),
)

tenant_key = Table(
    "tenant_key",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data_key", LargeBinary, nullable=False),
    Column("master_key", Text, nullable=False),
    Column("seals", Boolean, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("made_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("tenant_key_seals", "tenant", unique=True, postgresql_where=text("seals")),
)

webhook = Table(
    "webhook",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("trigger", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("header", Text),
    Column("key_header", Text),
    Column("payload", JSONB),
    Column("created_by", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("completes", Text),
    Column("fails", Text),
)

webhook_refusal = Table(
    "webhook_refusal",
    METADATA,
    Column("webhook", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
    Column("hour", INSTANT, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("last_at", INSTANT, nullable=False),
    Column("last_name", Text),
)

audit = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("by", Text, nullable=False),
    Column("role", Text, nullable=False, server_default=text("SESSION_USER")),
    Column("operation", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("details", Text, nullable=False),
    Column("position", BigInteger, unique=True),
    Column("previous", LargeBinary),
    Column("seal", LargeBinary),
    Index("audit_at", "at"),
    Index("audit_unsealed", "id", postgresql_where=text("(position IS NULL)")),
)

audit_chain = Table(
    "audit_chain",
    METADATA,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("position", BigInteger, nullable=False),
    Column("seal", LargeBinary, nullable=False),
    Column("dropped_position", BigInteger, nullable=False),
    Column("dropped_seal", LargeBinary, nullable=False),
)

service_role = Table(
    "service_role",
    METADATA,
    Column("role", Text, primary_key=True),
    Column("service", Text, nullable=False),
)
