"""Schedules, their fires, and which of these are open or wait. What each is for: migrations/versions/0001/schedules.sql."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

schedule = Table(
    "schedule",
    METADATA,
    Column("ref", Text, primary_key=True),
    Column("definition_id", Integer, ForeignKey("definition.id"), nullable=False),
    Column("namespace_id", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("since", INSTANT, nullable=False),
    Column("next_due", INSTANT),
    Column("last_due", INSTANT),
    Column("last_execution", UUID),
    Column("error", Text),
    Column("updated_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("schedule_due", "next_due", postgresql_where=text("next_due IS NOT NULL")),
)


fire = Table(
    "fire",
    METADATA,
    Column("schedule", Text, primary_key=True),
    Column("due_at", INSTANT, primary_key=True),
    Column("status", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("execution_id", UUID),
    Column("recoveries", Integer, nullable=False, server_default=text("0")),
    Column("made_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("made_by", Text),
    Column("outcome", Text),
    Column("ended_at", INSTANT),
    Column("error", Text),
    Index("fire_made", "made_at", postgresql_using="brin"),
    postgresql_partition_by="RANGE (due_at)",
)


open_fire = Table(
    "open_fire",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("schedule", Text, nullable=False),
    Column("due_at", INSTANT, nullable=False),
    Column("made_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


waiting_fire = Table(
    "waiting_fire",
    METADATA,
    Column("schedule", Text, primary_key=True),
    Column("due_at", INSTANT, primary_key=True),
    Column("execution_id", UUID, nullable=False),
    Column("replaces", Boolean, nullable=False),
    Column("namespace_id", Integer, nullable=False),
    Column("definition_id", Integer, nullable=False),
    Column("not_before", INSTANT),
    Column("params", JSONB, nullable=False),
    Column("options", JSONB),
    Column("origin", JSONB),
)
