"""The execution that published an event."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

WORKS = text("select exists (select from process)")
# The primary key of `effect` leads from an execution to its effects. This index leads from an event to its execution.
EFFECT_EVENT = "create index concurrently if not exists effect_event on effect (id) where kind = 'event'"


def upgrade() -> None:
    if op.get_bind().execute(WORKS).scalar():
        with op.get_context().autocommit_block():
            op.execute(EFFECT_EVENT)
    else:  # an empty database gets all versions in one transaction
        op.execute(EFFECT_EVENT.replace(" concurrently", ""))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
