"""The definitions, their routes and their limits."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from tests.penstock.store.tables.metadata import INSTANT, METADATA

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
    Column("triggers", ARRAY(Text)),
    Column("watches_since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("catalog_trigger", "trigger", postgresql_where=text("trigger IS NOT NULL")),
    Index(
        "catalog_triggers",
        "triggers",
        postgresql_using="gin",
        postgresql_where=text("triggers IS NOT NULL"),
    ),
)


cluster = Table(
    "cluster",
    METADATA,
    Column("id", Integer, primary_key=True, server_default=text("1")),
    Column(
        "resumed_at", INSTANT, nullable=False, server_default=text("'-infinity'::timestamp with time zone")
    ),
    Column("announced", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("subscribed", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("seen_at", INSTANT, nullable=False, server_default=text("'-infinity'::timestamp with time zone")),
)


namespace = Table(
    "namespace",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("queue", Text),
    Column("envelope", SmallInteger, nullable=False, server_default=text("20")),
    Column("limits", ARRAY(Integer), nullable=False, server_default=text("'{}'::integer[]")),
    Column("away_since", INSTANT),
    Column("lacked", Boolean, nullable=False, server_default=text("false")),
    Column("hold", Text),
    UniqueConstraint("name", "action"),
    Index("namespace_lacked", "id", postgresql_where=text("lacked")),
)


concurrency_limit = Table(
    "concurrency_limit",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("ref", Text, nullable=False),
    Column("definition_id", Integer, ForeignKey("definition.id"), nullable=False),
    Column("scope", Text, nullable=False),
    Column("max", Integer, nullable=False),
    Column("by", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("fair", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("when_full", Text, nullable=False, server_default=text("'enqueue'::text")),
    Column("max_waiting", Integer),
    Column("rate_count", Integer),
    Column("rate_seconds", Double),
    Column("while_waiting", Text, nullable=False, server_default=text("'release'::text")),
    Column("cost", JSONB),
    Column("unit", Text, nullable=False, server_default=text("''::text")),
    Column("budget", Integer),
    Column("breaker", JSONB),
    UniqueConstraint("ref", "by"),
)


legal_move = Table(
    "legal_move",
    METADATA,
    Column("subject", Text, primary_key=True),
    Column("old", Text, primary_key=True),
    Column("new", Text, primary_key=True),
)
