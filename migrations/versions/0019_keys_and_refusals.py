"""The key of an execution is found by its id."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# The page of an execution shows its idempotency key. An attempt that was interrupted has left an invalid index.
KEYS = (
    "drop index concurrently if exists idempotency_execution",
    "create index concurrently idempotency_execution on idempotency (execution_id)",
)
WORKS = text("select exists (select from process)")


def upgrade() -> None:
    if op.get_bind().execute(WORKS).scalar():
        with op.get_context().autocommit_block():
            for statement in KEYS:
                op.execute(statement)
    else:  # an empty database gets all versions in one transaction, and no process has to wait for a lock
        for statement in KEYS:
            op.execute(statement.replace(" concurrently", ""))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
