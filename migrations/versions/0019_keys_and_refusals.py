"""The key of an execution is found by its id. Refused calls of webhooks are counted."""

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

# `webhook` is empty for calls of names that no webhook has; `last_name` is then the last of these names. `webhook` is also empty
# for callbacks. Their reasons begin with "callback:". `hour` is the begin of the hour in UTC. A row counts all calls of its hour
# that were refused for one reason, so no caller decides how many rows there are.
WEBHOOK_REFUSAL = """
create table if not exists webhook_refusal (
    webhook text not null,
    reason text not null,
    hour timestamptz not null,
    calls bigint not null,
    last_at timestamptz not null,
    last_name text,
    primary key (webhook, reason, hour)
)
"""
WORKS = text("select exists (select from process)")


def upgrade() -> None:
    op.execute(WEBHOOK_REFUSAL)
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
