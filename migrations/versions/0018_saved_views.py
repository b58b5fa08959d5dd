"""Saved views: lists of executions that people find again by a name."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# `owner` is the caller that saved it; null: a removed one, which had shared it. `filters` are those of a list, `tenants` those that
# its filters were chosen for; null: all.
SAVED_VIEW = """
create table if not exists saved_view (
    id uuid primary key,
    owner text,
    name text not null,
    description text,
    filters jsonb not null,
    tenants text[],
    shared boolean not null,
    version integer not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    changed_at timestamptz not null default clock_timestamp(),
    changed_by text not null,
    unique (owner, name)
)
"""
# The page of executions reads the shared views each time, and not the private ones of all others.
SAVED_VIEW_SHARED = "create index if not exists saved_view_shared on saved_view (name) where shared"


def upgrade() -> None:
    for statement in (SAVED_VIEW, SAVED_VIEW_SHARED):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
