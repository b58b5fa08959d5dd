"""Executions: the hot rows, what belongs to them, and what is kept of them."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA, LimitKey

execution = Table(
    "execution",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("status", Text, nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("recoveries", Integer, nullable=False, server_default=text("0")),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("timed", Boolean, nullable=False, server_default=text("false")),
    Column("item", Integer, nullable=False, server_default=text("'-1'::integer")),
    Column("namespace_id", Integer, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("parent", UUID),
    Column("claim", UUID),
    Column("ready_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("not_before", INSTANT),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("finished_at", INSTANT),
    Column("since", INSTANT),
    Column("task", Text),
    Column("reason", Text),
    Column("ends_as", Text),
    Column("keys", ARRAY(LimitKey)),
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
    Index("payload_traced", "execution_id", postgresql_where=text("(origin ? 'trace'::text)")),
)


untraced = Table(
    "untraced",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


result = Table(
    "result",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("result", JSONB),
    Column("error", JSONB),
    Index("result_error", "execution_id", postgresql_where=text("error IS NOT NULL")),
)


attempt = Table(
    "attempt",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("worker", Text),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("error", JSONB),
)


live = Table(
    "live",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("restaged_at", INSTANT),
)


stuck = Table(
    "stuck",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


parked = Table(
    "parked",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("queue", Text, primary_key=True),
    Column("definition_id", Integer, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("worker", UUID),
    Column("executor", Text),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("rank", SmallInteger, nullable=False, server_default=text("0")),
    Index("parked_turn", "queue", "definition_id", "rank", "ready_at", "execution_id"),
)


backlog = Table(
    "backlog",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("root_at", INSTANT, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Index("backlog_turn", "queue", "rank", "tenant", "root_at", "ready_at", "execution_id"),
)
ordered_route = Table(
    "ordered_route",
    METADATA,
    Column("queue", Text, nullable=False),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("ordered_route_queue", "queue"),
)
route_turn = Table(
    "route_turn",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("turns", BigInteger, nullable=False, server_default=text("0")),
    Column("rank", SmallInteger, nullable=False, server_default=text("32767")),
)
tenant_turn = Table(
    "tenant_turn",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("rank", SmallInteger, primary_key=True),
    Column("tenant", Text, nullable=False),
)
route_tenant = Table(
    "route_tenant",
    METADATA,
    Column("queue", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Index("route_tenant_queue", "queue", "tenant"),
)


held_execution = Table(
    "held_execution",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("namespace_id", Integer, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Index("held_execution_next", "namespace_id", "rank", "ready_at", "execution_id"),
)


history = Table(
    "history",
    METADATA,
    Column("execution_id", UUID, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("old", Text),
    Column("new", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("actor", Text),
    Column("reason", Text),
    Column("ready_at", INSTANT),
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
    Column("attempt", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("recoveries", Integer, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("reason", Text),
    Column("params", JSONB),
    Column("options", JSONB),
    Column("origin", JSONB),
    Column("result", JSONB),
    Column("error", JSONB),
    Column("state", JSONB),
    Column("steps", JSONB),
    Column("attempts", JSONB),
    Index("archive_root", "root"),
    Index("archive_not_completed", "id", postgresql_where=text("status <> 'completed'")),
    Index("archive_action", "action", "id"),
    Index("archive_tenant", text("split_part(namespace, '::', 1)"), "id"),
    postgresql_partition_by="RANGE (finished_at)",
)


label = Table(
    "label",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("child", Boolean, nullable=False),
    Index("label_newest", "tenant", "key", "value", "child", "execution_id"),
)


archived_label = Table(
    "archived_label",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("child", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    Column("finished_at", INSTANT, primary_key=True),
    Index("archived_label_newest", "tenant", "key", "value", "child", "id"),
    Index(
        "archived_label_bad",
        "tenant",
        "key",
        "value",
        "child",
        "status",
        "id",
        postgresql_where=text("status <> 'completed'"),
    ),
    postgresql_partition_by="RANGE (finished_at)",
)


log_line = Table(
    "log_line",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("stream", Text, nullable=False),
    Column("line", Text, nullable=False),
    Column("at", INSTANT, primary_key=True, server_default=text("clock_timestamp()")),
    Column("worker_id", UUID, nullable=False),
    Column("worker", Text, nullable=False),
    postgresql_partition_by="RANGE (at)",
)
