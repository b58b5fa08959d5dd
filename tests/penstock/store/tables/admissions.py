"""What executions wait for: slots, timers, answers."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

slot = Table(
    "slot",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", SmallInteger, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


waiter = Table(
    "waiter",
    METADATA,
    Column("lane", Text, primary_key=True),
    Column("rank", SmallInteger, primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("ready_at", INSTANT, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("fair_group", Text),
    Index("waiter_execution", "execution_id"),
    Index("waiter_fair", "fair_group", "rank", "turn", postgresql_where=text("fair_group IS NOT NULL")),
)


lane = Table(
    "lane",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("namespace_id", Integer, nullable=False),
    Column("keys", ARRAY(Text), nullable=False),
    Column("gate", Text, nullable=False),
    Column("fair", Text),
    Column("rank", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("execution_id", UUID, nullable=False),
    Column("moved_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("began_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("admitted", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "place",
        BigInteger,
        Computed("CASE WHEN (fair = gate) THEN turn ELSE (0)::bigint END", persisted=True),
    ),
    Index("lane_gate", "gate", "rank", "place", "ready_at", "execution_id"),
    Index("lane_shared", "gate", postgresql_where=text("(cardinality(keys) > 1)")),
    Index("lane_fair", "fair", postgresql_where=text("fair IS NOT NULL")),
)


wake = Table(
    "wake",
    METADATA,
    Column("key", Text, nullable=False),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("wake_at", "at"),
    Index("wake_key", "key"),
)


admission = Table(
    "admission",
    METADATA,
    Column("seq", BigInteger, nullable=False, server_default=text("nextval('admission_seq'::regclass)")),
    Column("key", Text, nullable=False),
    Column("execution_id", UUID, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("since", INSTANT, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("held", Integer, nullable=False),
    Column("allowed", Integer, nullable=False),
    Column("rated", Boolean, nullable=False),
    Index("admission_rate", "key", "admitted_at", postgresql_where=text("rated")),
    postgresql_partition_by="RANGE (admitted_at)",
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
