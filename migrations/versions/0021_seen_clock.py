"""Executors notice that the clock of the database went back."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

# The latest instant on the database's clock that an executor has noted. It is to come if the clock went back.
SEEN = "alter table cluster add column if not exists seen_at timestamptz not null default '-infinity'"


def upgrade() -> None:
    op.execute(SEEN)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
