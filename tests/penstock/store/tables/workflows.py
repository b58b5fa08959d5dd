"""The state of runs of workflows."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

workflow = Table(
    "workflow",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("definition_id", Integer, nullable=False),
    Column("depth", SmallInteger, nullable=False, server_default=text("0")),
    Column("tenant", Text, nullable=False),
    Column("head", JSONB),
    Column("rerun", JSONB),
    Column("stops", Integer, nullable=False, server_default=text("0")),
    Column("stop_status", Text),
    Column("stop_reason", Text),
    Column("version", Integer, nullable=False, server_default=text("0")),
)

workflow_task = Table(
    "workflow_task",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("task", Integer, primary_key=True),
    Column("failing", Boolean, nullable=False, server_default=text("false")),
    Column("record", JSONB, nullable=False),
)

workflow_variable = Table(
    "workflow_variable",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("writer", Integer, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", JSONB),
)

workflow_item = Table(
    "workflow_item",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("task", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("value", JSONB),
)

workflow_command = Table(
    "workflow_command",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("kind", Text, nullable=False),
    Column("task", Text),
    Column("value", JSONB),
    Column("by", Text, nullable=False),
    Column("reason", Text),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("obeyed_at", INSTANT),
    Column("error", Text),
    Index("workflow_command_open", "execution_id", postgresql_where=text("(obeyed_at IS NULL)")),
    Index("workflow_command_rerun", "execution_id", postgresql_where=text("(kind = 'rerun'::text)")),
)

outside_wait = Table(
    "outside_wait",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("name", Text),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("heartbeat", Double),
    Column("deadline_at", INSTANT),
    Column("due_at", INSTANT),
    Column("progress", Double),
    Column("progress_text", Text),
    Column("progress_at", INSTANT),
    Column("outcome", JSONB),
    Column("settled_at", INSTANT),
    Index(
        "outside_wait_name",
        "tenant",
        "name",
        postgresql_where=text("((name IS NOT NULL) AND (settled_at IS NULL))"),
    ),
    Index("outside_wait_due", "due_at", postgresql_where=text("(due_at IS NOT NULL)")),
)

early_outcome = Table(
    "early_outcome",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("outcome", JSONB, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("early_outcome_created", "created_at"),
)

effect = Table(
    "effect",
    METADATA,
    Column("parent", UUID, primary_key=True),
    Column("id", UUID, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("effect_created", "created_at"),
    Index("effect_event", "id", postgresql_where=text("kind = 'event'")),
)

paused_workflow = Table("paused_workflow", METADATA, Column("execution_id", UUID, primary_key=True))

event_wait = Table(
    "event_wait",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("path", JSONB),
    Column("key", Text),
    Column("since", INSTANT, nullable=False),
    Index("event_wait_trigger", "trigger", "tenant", "key"),
)

event_path = Table(
    "event_path",
    METADATA,
    Column("trigger", Text, primary_key=True),
    Column("path", JSONB, primary_key=True),
)

workflow_kept = Table(
    "workflow_kept",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("task", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("result", JSONB),
    Column("error", JSONB),
)
