"""Durable functions. What the columns are for: migrations/versions/0001/steps.sql."""

from __future__ import annotations

from sqlalchemy import ARRAY, REAL, Column, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import JSON, JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

step = Table(
    "step",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("1")),
    Column("attempt", Integer, nullable=False),
    Column("took", REAL, nullable=False, server_default=text("0")),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("result", JSON),
    Column("error", JSON),
    Column("asked_after", Integer, nullable=False, server_default=text("0")),
    Column("told", Integer),
)

suspended = Table(
    "suspended",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("until", INSTANT),
    Column("children", ARRAY(UUID), nullable=False, server_default=text("'{}'::uuid[]")),
    Column("signals", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
)
