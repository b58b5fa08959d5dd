"""Subscriptions choose executions by labels."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

# A subscription is called only for executions that have all of these labels.
SUBSCRIPTION = "alter table subscription add column if not exists labels jsonb not null default '{}'"


def upgrade() -> None:
    op.execute(SUBSCRIPTION)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
