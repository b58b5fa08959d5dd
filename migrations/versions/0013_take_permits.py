"""Permits of takes: a gateway may have work assigned to the workers that wait for it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# A worker that calls a gateway has no session with the database, so its permits are those of a take that waits there. `claim`
# is the claim id of the take, under which any gateway finds what was assigned. `holder` is the gateway, which is notified, and
# `lock_key` the lock of its session. All three are null for a worker with a session of its own.
PERMIT = """
alter table permit add column if not exists claim uuid, add column if not exists lock_key bigint,
    add column if not exists holder uuid
"""
# `calls`: how many calls have looked up what is claimed here. A gateway returns the work of a caller that has gone only if no
# other call of the same take was given it.
CALLS = "alter table claim add column if not exists calls integer not null default 0"
WORKS = text("select exists (select from process)")
# A worker waits with one take: that of another gateway, which it has left, gives way.
TAKE = "create unique index concurrently if not exists permit_take on permit (worker, queue) where claim is not null"


def upgrade() -> None:
    op.execute(PERMIT)
    op.execute(CALLS)
    if op.get_bind().execute(WORKS).scalar():
        with op.get_context().autocommit_block():
            op.execute(TAKE)
    else:  # an empty database gets all versions in one transaction
        op.execute(TAKE.replace(" concurrently", ""))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
