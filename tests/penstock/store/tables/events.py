"""Events, what they started, and the keys that make each happen once."""

from __future__ import annotations

from sqlalchemy import ARRAY, Column, Index, Integer, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

event = Table(
    "event",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("trigger", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("source", Text),
    Column("created_at", INSTANT, primary_key=True, server_default=text("now()")),
    postgresql_partition_by="RANGE (created_at)",
)


unmatched = Table(
    "unmatched",
    METADATA,
    Column("event_id", UUID, primary_key=True),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


event_trace = Table(
    "event_trace",
    METADATA,
    Column("event_id", UUID, primary_key=True),
    Column("trace", JSONB, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    Index("event_trace_created", "created_at"),
)


event_key = Table(
    "event_key",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("trigger", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("event_id", UUID, nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    Index("event_key_created", "created_at"),
)


untold = Table(
    "untold",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


enforcement = Table(
    "enforcement",
    METADATA,
    Column("event_id", UUID, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("definition_id", Integer, nullable=False),
    Column("execution_id", UUID, nullable=False, unique=True),
    Column("status", Text, nullable=False),
    Column("namespace_id", Integer),
    Column("action_definition_id", Integer),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("params", JSONB),
    Column("options", JSONB),
    Column("error", Text),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    Index("enforcement_created", "created_at"),
    Index("enforcement_failed", "event_id", "rule", postgresql_where=text("error is not null")),
)


idempotency = Table(
    "idempotency",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    Index("idempotency_created", "created_at"),
    Index("idempotency_execution", "execution_id"),
)


burst_event = Table(
    "burst_event",
    METADATA,
    Column("event_id", UUID, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("burst", UUID),
    Column("fits", ARRAY(SmallInteger)),
    Column("part", SmallInteger),
    Column("dropped", Text),
    Index(
        "burst_event_open", "rule", "tenant", "key", "at", "event_id", postgresql_where=text("burst is null")
    ),
    Index("burst_event_closed", "burst", postgresql_where=text("burst is not null")),
    Index("burst_event_at", "at"),
)


burst_key = Table(
    "burst_key",
    METADATA,
    Column("rule", Text, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("due_at", INSTANT, nullable=False),
    Index("burst_key_due", "due_at"),
)


burst = Table(
    "burst",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("rule", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("keep", Text, nullable=False),
    Column("event_id", UUID, nullable=False),
    Column("events", Integer, nullable=False),
    Column("first_at", INSTANT, nullable=False),
    Column("last_at", INSTANT, nullable=False),
    Column("closed_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("burst_closed", "closed_at"),
)


start_burst = Table(
    "start_burst",
    METADATA,
    Column("namespace_id", Integer, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("starts", Integer, nullable=False),
    Column("first_at", INSTANT, nullable=False),
    Column("closes_at", INSTANT, nullable=False),
    Index("start_burst_first", "first_at"),
)


joined_start = Table(
    "joined_start",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("joined_start_at", "at"),
)


chain = Table(
    "chain",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("rule", Text),
    Column("max_depth", Integer),
    Column("max_descendants", Integer),
    Column("depth", Integer, nullable=False),
    Column("descendants", Integer, nullable=False, server_default=text("0")),
    Column("cut_at", INSTANT),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("chain_created", "created_at"),
)


chain_step = Table(
    "chain_step",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("cause", UUID),
    Column("name", Text),
    Column("depth", Integer, nullable=False),
    Column("chains", ARRAY(UUID), nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("raised", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Index("chain_step_created", "created_at"),
)
