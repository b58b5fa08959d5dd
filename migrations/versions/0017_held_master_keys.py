"""The ids of the master keys that each process holds."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Ids of master keys, the newest first, and never the keys. A process of an older version does not write them: its keys are
# unknown. A worker that calls a gateway holds none.
HELD_MASTER_KEYS = "alter table process add column if not exists master_keys text[]"


def upgrade() -> None:
    op.execute(HELD_MASTER_KEYS)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
