"""The live processes, and the attempts that they hold."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    Interval,
    LargeBinary,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

claim = Table(
    "claim",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("worker", UUID, nullable=False),
    Column("executions", ARRAY(UUID), nullable=False),
    Column("claimed_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("assigned", Boolean, nullable=False, server_default=text("false")),
    Column("calls", Integer, nullable=False, server_default=text("0")),
    Index("claim_worker", "worker"),
)


permit = Table(
    "permit",
    METADATA,
    Column("worker", UUID, nullable=False),
    Column("queue", Text, nullable=False),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("channel", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("definitions", ARRAY(Integer), nullable=False),
    Column("claim", UUID),
    Column("lock_key", BigInteger),
    Column("holder", UUID),
    Index("permit_queue", "queue", "at"),
    Index("permit_take", "worker", "queue", unique=True, postgresql_where=text("claim IS NOT NULL")),
    Index("permit_worker", "worker"),
    prefixes=["unlogged"],
)


process = Table(
    "process",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("routes", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("actions", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("concurrency", Integer, nullable=False, server_default=text("0")),
    Column("state", Text, nullable=False, server_default=text("'active'::text")),
    Column("holding", ARRAY(UUID), nullable=False, server_default=text("'{}'::uuid[]")),
    Column("missing", ARRAY(UUID), nullable=False, server_default=text("'{}'::uuid[]")),
    Column("executors", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("started_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("beat_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("lock_key", BigInteger),
    Column("locked_at", INSTANT),
    Column("unlocked_at", INSTANT),
    Column("language", Text),
    Column("sdk", Text),
    Column("session", LargeBinary),
    Column("token", Text),
    Column("tenants", ARRAY(Text)),
    Column("patience", Interval),
    Column("master_keys", ARRAY(Text)),
)
