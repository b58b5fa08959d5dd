"""The messages to be published, and those that no consumer could handle."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Identity, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

outbox = Table(
    "outbox",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("ids", ARRAY(UUID), nullable=False),
    Column("body", LargeBinary),
    Column("message_id", Text),
    Column("type", Text),
    Column("headers", JSONB),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("due_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("error", Text),
    Column("holder", UUID),
    Index("outbox_queue", "queue", "due_at"),
)


dead_letter = Table(
    "dead_letter",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("type", Text),
    Column("message_id", Text),
    Column("body", LargeBinary, nullable=False),
    Column("cut_from", Integer),
    Column("headers", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("count", Integer, nullable=False, server_default=text("1")),
    Column("first_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("last_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("dead_letter_last", "last_at"),
)

awaited = Table(
    "awaited",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("watcher", UUID, primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    prefixes=["UNLOGGED"],
)
