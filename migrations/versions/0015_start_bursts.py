"""Bursts of starts: starts that follow each other and have one execution."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# The latest burst of each key of an action and a tenant (`namespace_id`). It has `starts` since `first_at`. The burst is open
# until `closes_at`, as long as its execution is due at that instant. The index names no column that a join changes.
START_BURST = """
create table if not exists start_burst (
    namespace_id integer not null,
    key text not null,
    execution_id uuid not null,
    starts integer not null,
    first_at timestamptz not null,
    closes_at timestamptz not null,
    primary key (namespace_id, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
START_BURST_FIRST = "create index if not exists start_burst_first on start_burst (first_at)"
# A start that joined the execution of another start. A client that lost the answer sends the start again with the same id.
JOINED_START = """
create table if not exists joined_start (
    id uuid primary key,
    execution_id uuid not null,
    at timestamptz not null default clock_timestamp()
)
"""
JOINED_START_AT = "create index if not exists joined_start_at on joined_start (at)"


def upgrade() -> None:
    for statement in (START_BURST, START_BURST_FIRST, JOINED_START, JOINED_START_AT):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
