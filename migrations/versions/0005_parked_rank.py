"""The priority of parked executions."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# `rank` is minus the priority: a worker that can run parked executions takes those of the highest priority first.
RANK = "alter table parked add column if not exists rank smallint not null default 0"
# An attempt that was interrupted has left an invalid index.
INDEXES = (
    "drop index concurrently if exists parked_turn",
    "create index concurrently parked_turn on parked (queue, definition_id, rank, ready_at, execution_id)",
    "drop index concurrently if exists parked_work",
)
WORKS = text("select exists (select from process)")


def upgrade() -> None:
    op.execute(RANK)
    if op.get_bind().execute(WORKS).scalar():
        with op.get_context().autocommit_block():
            for statement in INDEXES:
                op.execute(statement)
    else:  # an empty database gets all versions in one transaction, and no process has to wait for a lock
        for statement in INDEXES:
            op.execute(statement.replace(" concurrently", ""))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
