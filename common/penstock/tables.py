"""The columns, once: what alembic is checked against. The statements are in penstock.store and in migrations/.

What each table is for stands beside its columns in the first migration (migrations/versions/0001/tables.sql).
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

METADATA = MetaData()
INSTANT = DateTime(timezone=True)

definition = Table(
    "definition",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("ref", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    UniqueConstraint("kind", "ref", "digest"),
)

catalog = Table(
    "catalog",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("ref", Text, primary_key=True),
    Column("definition_id", Integer, ForeignKey("definition.id"), nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("trigger", Text),
    Column("updated_at", INSTANT, nullable=False, server_default=text("now()")),
    Index("catalog_trigger", "trigger", postgresql_where=text("trigger IS NOT NULL")),
)

cluster = Table(
    "cluster",
    METADATA,
    Column("id", Integer, primary_key=True, server_default=text("1")),
    Column("placement_version", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "resumed_at", INSTANT, nullable=False, server_default=text("'-infinity'::timestamp with time zone")
    ),
)

namespace = Table(
    "namespace",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("action", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("envelope", SmallInteger, nullable=False, server_default=text("20")),
    Column("limits", ARRAY(Integer), nullable=False, server_default=text("'{}'::integer[]")),
)

execution = Table(
    "execution",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("status", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False, server_default=text("0")),
    Column("failures", SmallInteger, nullable=False, server_default=text("0")),
    Column("recoveries", SmallInteger, nullable=False, server_default=text("0")),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("limited", Boolean, nullable=False, server_default=text("false")),
    Column("item", Integer, nullable=False, server_default=text("'-1'::integer")),
    Column("namespace_id", Integer, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("parent", UUID),
    Column("claim", UUID),
    Column("ready_at", INSTANT, nullable=False, server_default=text("now()")),
    Column("not_before", INSTANT),
    Column("created_at", INSTANT, nullable=False, server_default=text("now()")),
    Column("finished_at", INSTANT),
    Column("task", Text),
    Column("reason", Text),
    Index(
        "execution_child", "parent", "task", "item", unique=True, postgresql_where=text("parent IS NOT NULL")
    ),
)

payload = Table(
    "payload",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("params", JSONB, nullable=False),
    Column("options", JSONB),
    Column("origin", JSONB),
)

result = Table(
    "result",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("result", JSONB),
    Column("error", JSONB),
)

attempt = Table(
    "attempt",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", SmallInteger, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("worker", Text),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("error", JSONB),
)

live = Table(
    "live",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
)

claim = Table(
    "claim",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("worker", UUID, nullable=False),
    Column("executions", ARRAY(UUID), nullable=False),
    Column("claimed_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("claim_worker", "worker"),
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
    Column("started_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("beat_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)

concurrency_limit = Table(
    "concurrency_limit",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("ref", Text, nullable=False, unique=True),
    Column("definition_id", Integer, ForeignKey("definition.id"), nullable=False),
    Column("scope", Text, nullable=False),
    Column("max", Integer, nullable=False),
    Column("by", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("fair", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("when_full", Text, nullable=False, server_default=text("'enqueue'::text")),
    Column("max_waiting", Integer),
    Column("rate_count", Integer),
    Column("rate_seconds", Double),
    Column("active", Boolean, nullable=False, server_default=text("true")),
)

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
    Column("headers", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("count", Integer, nullable=False, server_default=text("1")),
    Column("first_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("last_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)

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
)

history = Table(
    "history",
    METADATA,
    Column("execution_id", UUID, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("old", Text),
    Column("new", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("actor", Text),
    Column("reason", Text),
    Index("history_at", "at", postgresql_using="brin"),
    postgresql_partition_by="RANGE (at)",
)

finished = Table(
    "finished",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("ids", ARRAY(UUID), nullable=False),
)

archive = Table(
    "archive",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("finished_at", INSTANT, primary_key=True),
    Column("status", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("root", UUID, nullable=False),
    Column("parent", UUID),
    Column("task", Text),
    Column("item", Integer),
    Column("created_at", INSTANT, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("failures", SmallInteger, nullable=False),
    Column("recoveries", SmallInteger, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("reason", Text),
    Column("params", JSONB),
    Column("options", JSONB),
    Column("origin", JSONB),
    Column("result", JSONB),
    Column("error", JSONB),
    Index("archive_root", "root"),
    postgresql_partition_by="RANGE (finished_at)",
)

legal_move = Table(
    "legal_move",
    METADATA,
    Column("old", Text, primary_key=True),
    Column("new", Text, primary_key=True),
)

log_line = Table(
    "log_line",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", SmallInteger, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("stream", Text, nullable=False),
    Column("line", Text, nullable=False),
    Column("at", INSTANT, primary_key=True, server_default=text("clock_timestamp()")),
    postgresql_partition_by="RANGE (at)",
)
