"""The execution that published an event."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# The primary key of `effect` leads from an execution to its effects. This index leads from an event to its execution.
EFFECT_EVENT = "create index if not exists effect_event on effect (id) where kind = 'event'"


def upgrade() -> None:
    op.execute(EFFECT_EVENT)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
