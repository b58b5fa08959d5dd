"""The rows that executions wait for: slots, timers, answers."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Double,
    Index,
    Integer,
    Numeric,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from tests.penstock.store.tables.metadata import INSTANT, METADATA, LimitKey

hold = Table(
    "hold",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("reason", Text),
    Column("by", Text, nullable=False),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("until", INSTANT),
    Column("rate_count", Integer),
    Column("rate_seconds", Double),
    Column("releasing_since", INSTANT),
    Column("released", BigInteger, nullable=False, server_default=text("0")),
)


slot = Table(
    "slot",
    METADATA,
    Column("limit_id", Integer, primary_key=True, autoincrement=False),
    Column("group_value", Text, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("cost", Numeric),
)


breaker = Table(
    "breaker",
    METADATA,
    Column("limit_id", Integer, primary_key=True, autoincrement=False),
    Column("group_value", Text, primary_key=True),
    Column("opened_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("probe_at", INSTANT),
    Column("probes", Integer, nullable=False, server_default=text("0")),
    Column("failed", Integer, nullable=False, server_default=text("0")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("releasing_since", INSTANT),
    Column("allowed", Integer, nullable=False, server_default=text("1")),
    Column("passed", Integer, nullable=False, server_default=text("0")),
    Column("by", Text),
    Column("reason", Text),
)


breaker_attempt = Table(
    "breaker_attempt",
    METADATA,
    Column("limit_id", Integer, nullable=False),
    Column("group_value", Text, nullable=False),
    Column("ended_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("execution_id", UUID, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("failed", Boolean, nullable=False),
    Index("breaker_attempt_key", "limit_id", "group_value", "ended_at"),
    Index("breaker_attempt_ended", "ended_at"),
)


budget = Table(
    "budget",
    METADATA,
    Column("owner", UUID, primary_key=True),
    Column("unit", Text, primary_key=True),
    Column("amount", Numeric, nullable=False),
    Column("when_spent", Text, nullable=False, server_default=text("'refuse'::text")),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("spent_at", INSTANT),
    Index("budget_created", "created_at"),
)


budget_tree = Table(
    "budget_tree",
    METADATA,
    Column("root", UUID, primary_key=True),
    Column("owner", UUID, nullable=False),
    Index("budget_tree_owner", "owner"),
)


budget_entry = Table(
    "budget_entry",
    METADATA,
    Column("owner", UUID, primary_key=True),
    Column("unit", Text, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("reserved", Numeric, nullable=False),
    Column("spent", Numeric),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
)


waiter = Table(
    "waiter",
    METADATA,
    Column("lane", UUID, primary_key=True),
    Column("rank", SmallInteger, primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("ready_at", INSTANT, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Column("since", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("fair_limit", Integer),
    Column("fair_key", Text),
    Column("fair_group", Text),
    Column("costs", ARRAY(Numeric)),
    Index("waiter_execution", "execution_id"),
    Index(
        "waiter_round",
        "fair_limit",
        "fair_key",
        "rank",
        "turn",
        postgresql_where=text("fair_limit IS NOT NULL"),
    ),
    Index(
        "waiter_group",
        "fair_limit",
        "fair_group",
        "rank",
        "turn",
        postgresql_where=text("fair_limit IS NOT NULL"),
    ),
)


lane = Table(
    "lane",
    METADATA,
    Column("id", UUID, primary_key=True),
    Column("namespace_id", Integer, nullable=False),
    Column("keys", ARRAY(LimitKey), nullable=False),
    Column("gate_kind", Text, nullable=False, server_default=text("'limit'::text")),
    Column("gate_limit", Integer),
    Column("gate_group", Text),
    Column("fair_limit", Integer),
    Column("rank", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("execution_id", UUID, nullable=False),
    Column("moved_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("began_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("admitted", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "place",
        BigInteger,
        Computed("CASE WHEN (fair_limit = gate_limit) THEN turn ELSE (0)::bigint END", persisted=True),
    ),
    Column("costs", ARRAY(Numeric)),
    Index("lane_gate", "gate_limit", "gate_group", "rank", "place", "ready_at", "execution_id"),
    Index("lane_shared", "gate_limit", "gate_group", postgresql_where=text("(cardinality(keys) > 1)")),
    Index(
        "lane_aside", "namespace_id", "rank", "ready_at", "execution_id",
        postgresql_where=text("(gate_kind <> 'limit'::text)"),
    ),
    Index(
        "lane_regroup", "rank", "ready_at", "execution_id", postgresql_where=text("(gate_kind = 'regroup'::text)")
    ),
)  # fmt: skip


wake = Table(
    "wake",
    METADATA,
    Column("limit_id", Integer),
    Column("group_value", Text),
    Column("namespace_id", Integer),
    Column("at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Index("wake_at", "at"),
    Index("wake_key", "limit_id", "group_value"),
    Index("wake_namespace", "namespace_id", postgresql_where=text("namespace_id IS NOT NULL")),
)


admission = Table(
    "admission",
    METADATA,
    Column("seq", BigInteger, nullable=False, server_default=text("nextval('admission_seq'::regclass)")),
    Column("limit_id", Integer, nullable=False),
    Column("group_value", Text, nullable=False),
    Column("execution_id", UUID, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("ready_at", INSTANT, nullable=False),
    Column("since", INSTANT, nullable=False),
    Column("admitted_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("held", Integer, nullable=False),
    Column("allowed", Integer, nullable=False),
    Column("rated", Boolean, nullable=False),
    Column("cost", Numeric),
    Index("admission_rate", "limit_id", "group_value", "admitted_at", postgresql_where=text("rated")),
    postgresql_partition_by="RANGE (admitted_at)",
)


timer = Table(
    "timer",
    METADATA,
    Column("due_at", INSTANT, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("execution_id", UUID, primary_key=True),
    Index("timer_execution", "execution_id"),
)

inquiry = Table(
    "inquiry",
    METADATA,
    Column("execution_id", UUID, primary_key=True),
    Column("status", Text, nullable=False, server_default=text("'created'::text")),
    Column("prompt", Text, nullable=False),
    Column("schema", JSONB),
    Column("assignee", Text),
    Column("default_answer", JSONB),
    Column("due_at", INSTANT),
    Column("created_at", INSTANT, nullable=False, server_default=text("clock_timestamp()")),
    Column("answered_at", INSTANT),
    Column("responder", Text),
    Column("response", JSONB),
    Index("inquiry_due", "due_at", postgresql_where=text("(status = 'created'::text)")),
)
