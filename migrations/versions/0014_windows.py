"""Windows of rules: events of several triggers that match together."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# `triggers` are those of a rule with a window, which has no `trigger`. Since `watches_since` a rule is enabled with an unchanged
# window. No window opens with an event from before, since the rule may have missed the events that follow it.
CATALOG = """
alter table catalog add column if not exists triggers text[],
    add column if not exists watches_since timestamptz not null default 'epoch'
"""
# A rule of now has no window. A later one watches since it was made.
WATCHES_SINCE = "alter table catalog alter column watches_since set default clock_timestamp()"
# `fits` has the parts of a window that the event fits, null for an event of a burst. `part` is the part that it took in its
# match. An event that left its window without a match has the reason in `dropped`, and its own id as `burst`, which no match has.
BURST_EVENT = """
alter table burst_event add column if not exists fits smallint[], add column if not exists part smallint,
    add column if not exists dropped text
"""
REASONS = """
alter table burst_event drop constraint if exists burst_event_dropped, add constraint burst_event_dropped
    check (dropped in ('expired', 'answered', 'full', 'late', 'changed')) not valid
"""
VALID = "alter table burst_event validate constraint burst_event_dropped"
WORKS = text("select exists (select from process)")
TRIGGERS = "create index concurrently if not exists catalog_triggers on catalog using gin (triggers) where triggers is not null"


def upgrade() -> None:
    op.execute(CATALOG)
    op.execute(WATCHES_SINCE)
    op.execute(BURST_EVENT)
    op.execute(REASONS)
    op.execute(VALID)
    if op.get_bind().execute(WORKS).scalar():
        with op.get_context().autocommit_block():
            op.execute(TRIGGERS)
    else:  # an empty database gets all versions in one transaction
        op.execute(TRIGGERS.replace(" concurrently", ""))


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
