"""What executions wait for: slots, timers, answers."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Identity, Index, Integer, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from penstock.tables.metadata import INSTANT, METADATA

slot = Table(
    "slot",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("limit_id", Integer, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("slot_key", "key"),
)


waiter = Table(
    "waiter",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("rank", SmallInteger, primary_key=True),
    Column("turn", BigInteger, primary_key=True, server_default=text("0")),
    Column("ready_at", INSTANT, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("limit_id", Integer, nullable=False),
    Column("keys", ARRAY(Text), nullable=False),
    Column("fair_group", Text, nullable=False, server_default=text("''::text")),
    Index("waiter_execution", "execution_id"),
)


wake = Table(
    "wake",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


admission = Table(
    "admission",
    METADATA,
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    Column("key", Text, nullable=False),
    Column("execution_id", UUID, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("held", Integer, nullable=False),
    Column("allowed", Integer, nullable=False),
    Index("admission_key", "key", "admitted_at"),
)


timer = Table(
    "timer",
    METADATA,
    Column("due_at", INSTANT, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Index("timer_execution", "execution_id"),
)

inquiry = Table(
    "inquiry",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("status", Text, nullable=False, server_default=text("'created'::text")),
    Column("prompt", Text, nullable=False),
    Column("schema", JSONB),
    Column("assignee", Text),
    Column("default_answer", JSONB),
    Column("due_at", INSTANT),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("answered_at", INSTANT),
    Column("responder", Text),
    Column("response", JSONB),
    Index("inquiry_due", "due_at", postgresql_where=text("(status = 'created'::text)")),
)
