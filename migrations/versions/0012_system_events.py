"""System events: the triggers above each step of a chain, spent budgets, and executions that were reported as stuck."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# The triggers of the system events from which the step descends. It raises no event of these triggers again.
STEP = "alter table chain_step add column if not exists raised text[] not null default '{}'"
# The instant at which an execution needed more than was left for the first time, if a rule asked for that event by then.
BUDGET = "alter table budget add column if not exists spent_at timestamptz"
# An execution that was reported as stuck, once a run. Insert and delete only.
STUCK = """
create table if not exists stuck (
    execution_id uuid primary key,
    at timestamptz not null default clock_timestamp()
)
"""


def upgrade() -> None:
    for statement in (STEP, BUDGET, STUCK):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
