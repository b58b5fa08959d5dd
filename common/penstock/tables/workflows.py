"""The state of runs of workflows."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Integer, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from penstock.tables.metadata import METADATA

workflow = Table(
    "workflow",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("definition_id", Integer, nullable=False),
    Column("depth", SmallInteger, nullable=False, server_default=text("0")),
    Column("tenant", Text, nullable=False),
    Column("head", JSONB),
    Column("stop_status", Text),
    Column("stop_reason", Text),
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
