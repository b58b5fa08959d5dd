"""Bounds of chains of events and rules."""

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


def upgrade() -> None:
    for statement in (
        CHAIN,
        CHAIN_CREATED,
        STEP,
        STEP_CREATED,
    ):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
