"""Bounds of chains of events and rules, and bursts of events that start one execution."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# The bounds of all that follows from an event, from a start, or from an execution that a rule started (`rule`). `id` is that of
# the event or execution. `depth` is the number of rules before it, and `descendants` counts the executions that rules have
# started after it. The chain is cut at `cut_at` for the first time.
CHAIN = """
create table chain (
    id uuid primary key,
    rule text,
    max_depth integer,
    max_descendants integer,
    depth integer not null,
    descendants integer not null default 0,
    cut_at timestamptz,
    created_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50)
"""
CHAIN_CREATED = "create index chain_created on chain (created_at)"
# An event or a top-level execution that belongs to chains. `cause` is the execution that published the event or started the
# execution, or the event that a rule matched. `name` is the trigger or the rule, null for a start. Insert and delete only.
STEP = """
create table chain_step (
    id uuid primary key,
    cause uuid,
    name text,
    depth integer not null,
    chains uuid[] not null,
    created_at timestamptz not null default clock_timestamp()
)
"""
STEP_CREATED = "create index chain_step_created on chain_step (created_at)"
# An event that a rule with a debounce time matched, with the key that separates its bursts. `burst` is null until the burst
# closes.
BURST_EVENT = """
create table burst_event (
    event_id uuid not null,
    rule text not null,
    tenant text not null,
    key text not null,
    at timestamptz not null,
    definition_id integer not null,
    burst uuid,
    primary key (event_id, rule)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
BURST_EVENT_OPEN = (
    "create index burst_event_open on burst_event (rule, tenant, key, at, event_id) where burst is null"
)
BURST_EVENT_CLOSED = "create index burst_event_closed on burst_event (burst) where burst is not null"
BURST_EVENT_AT = "create index burst_event_at on burst_event (at)"
# A key with an open burst, and the earliest instant at which it can close. A transaction that closes a burst or adds an event
# locks the row here.
BURST_KEY = """
create table burst_key (
    rule text not null,
    tenant text not null,
    key text not null,
    due_at timestamptz not null,
    primary key (rule, tenant, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
BURST_KEY_DUE = "create index burst_key_due on burst_key (due_at)"
# A closed burst. Its enforcement is that of the event `event_id`: its last event, or its first where `keep` says so.
BURST = """
create table burst (
    id uuid primary key,
    rule text not null,
    tenant text not null,
    key text not null,
    keep text not null check (keep in ('last', 'first', 'all')),
    event_id uuid not null,
    events integer not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    closed_at timestamptz not null default clock_timestamp()
)
"""
BURST_CLOSED = "create index burst_closed on burst (closed_at)"


def upgrade() -> None:
    for statement in (
        CHAIN,
        CHAIN_CREATED,
        STEP,
        STEP_CREATED,
        BURST_EVENT,
        BURST_EVENT_OPEN,
        BURST_EVENT_CLOSED,
        BURST_EVENT_AT,
        BURST_KEY,
        BURST_KEY_DUE,
        BURST,
        BURST_CLOSED,
    ):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
