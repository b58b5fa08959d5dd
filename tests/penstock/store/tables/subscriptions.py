"""Programs that are called when executions move. What the columns are for: migrations/versions/0001/subscriptions.sql."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Identity, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

NOW = text("clock_timestamp()")

subscription = Table(
    "subscription",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("statuses", ARRAY(Text), nullable=False),
    Column("tenant", Text),
    Column("action", Text),
    Column("workflow", Text),
    Column("tasks", Boolean, nullable=False, server_default=text("false")),
    Column("created_by", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=NOW),
    Column("delivered_at", INSTANT),
    Column("failing_since", INSTANT),
    Column("error", Text),
    Column("dropped", BigInteger, nullable=False, server_default=text("0")),
    Column("disabled_at", INSTANT),
    Column("disabled_because", Text),
    Column("labels", JSONB, nullable=False, server_default=text("'{}'")),
)

subscribed_move = Table(
    "subscribed_move",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("namespace_id", Integer, nullable=False),
    Column("parent", UUID),
    Column("reason", Text),
    Column("at", INSTANT, nullable=False, server_default=NOW),
)

delivery = Table(
    "delivery",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("subscription", Text, ForeignKey("subscription.name", ondelete="CASCADE"), nullable=False),
    Column("body", Text, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("made_at", INSTANT, nullable=False, server_default=NOW),
    Column("due_at", INSTANT, nullable=False, server_default=NOW),
    Index("delivery_due", "subscription", "due_at"),
)
