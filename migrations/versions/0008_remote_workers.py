"""Workers that call a gateway: their sessions, their patience, and tokens that are for some routes and packs."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Of a worker that calls a gateway: `session` is the digest of the secret that its calls carry, and `token` the name of the token
# that it began with. It gets work of `tenants` alone; null means all. It counts as lost `patience` after its last heartbeat: no
# end of a session with the database shows its end. All are null for other processes.
REMOTE = """
alter table process
    add column language text,
    add column sdk text,
    add column session bytea,
    add column token text,
    add column tenants text[],
    add column patience interval
"""
# A token of scope `work` is for these routes and packs alone. Empty means all.
TOKEN = """
alter table api_token
    add column routes text[] not null default '{}',
    add column packs text[] not null default '{}'
"""


def upgrade() -> None:
    for statement in (REMOTE, TOKEN):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
