"""Figures of the whole installation. What the columns are for: migrations/versions/0001/figures.sql."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table, text
from sqlalchemy.dialects.postgresql import JSONB

from tests.penstock.store.tables.metadata import INSTANT, METADATA

figures = Table(
    "figures",
    METADATA,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("measured_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("due_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("body", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
)
