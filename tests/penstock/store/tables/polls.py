"""Poll triggers. What the columns are for: migrations/versions/0001/polls.sql."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA

poll = Table(
    "poll",
    METADATA,
    Column("trigger", Text, primary_key=True),
    Column("definition_id", Integer, ForeignKey("definition.id"), nullable=False),
    Column("namespace_id", Integer, nullable=False),
    Column("every", Double, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("next_due", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("running", UUID),
    Column("state", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("called_at", INSTANT),
    Column("found", BigInteger, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    Index("poll_due", "next_due", postgresql_where=text("running IS NULL AND enabled")),
)
