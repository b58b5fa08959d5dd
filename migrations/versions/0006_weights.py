"""Costs of executions under limits, settled at the end of an attempt, and budgets that a tree of executions shares."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# The cost of one execution under the limit: `text` as it was declared, and `terms`, which are added up (see cost_of). Null:
# each execution counts as one. `unit` is the name under which an attempt reports its true cost, '' for the cost without a name.
LIMIT = "alter table concurrency_limit add column cost jsonb, add column unit text not null default ''"
# The cost that a slot takes of its key. Null: the limit had no cost at the admission, and the slot counts as one.
SLOT = "alter table slot add column cost numeric"
# The costs of a waiting execution, and of the first execution of a lane, in the order of the lane's keys. Null: no limit has a
# cost.
WAITER = "alter table waiter add column costs numeric[]"
LANE = "alter table lane add column costs numeric[]"
# The cost that counts in the window of a rate: the reserved cost, and from the end of the attempt on the true cost, if the
# attempt reported it. `held` and `allowed` are in the same unit, as they were at the admission.
ADMISSION = "alter table admission add column cost numeric"
# `costs` of a candidate are in the order of its keys.
CANDIDATE = "alter type candidate add attribute costs numeric[]"
# Under a weighted key, `held` and `free` are in the unit of the cost, and `free` is negative where settled costs exceed the
# limit. `allowed` is then the largest possible cost of one execution.
ROOM = """
alter type room alter attribute held type numeric, alter attribute allowed type numeric, alter attribute free type numeric,
    add attribute weighted boolean
"""

# The budget that limits costs instead of `max` and the rate. All limits of a unit have the row of that unit here, so that they
# share one key for each tree. The unit's row names itself.
BUDGET_OF_LIMIT = "alter table concurrency_limit add column budget integer"
# A budget of a tree of executions. `owner` is the root for which it was made. `when_spent` decides what happens to an execution
# that needs more than is left: it is refused, or waits until the amount is raised.
BUDGET = """
create table budget (
    owner uuid not null,
    unit text not null,
    amount numeric not null,
    when_spent text not null default 'refuse' check (when_spent in ('refuse', 'wait')),
    created_at timestamptz not null default clock_timestamp(),
    primary key (owner, unit)
)
"""
CREATED = "create index budget_created on budget (created_at)"
# A tree that shares a budget: the tree of the owner, and those of its re-runs.
TREE = """
create table budget_tree (
    root uuid primary key,
    owner uuid not null
)
"""
TREE_OF = "create index budget_tree_owner on budget_tree (owner)"
# The ledger of a budget: an attempt, the cost that was reserved at its admission, and the true cost that it reported. What is
# left of a budget is its amount minus these, added up under the lock of the budget's key.
ENTRY = """
create table budget_entry (
    owner uuid not null,
    unit text not null,
    execution_id uuid not null,
    attempt integer not null,
    reserved numeric not null,
    spent numeric,
    at timestamptz not null default clock_timestamp(),
    primary key (owner, unit, execution_id, attempt)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""


def upgrade() -> None:
    for statement in (
        LIMIT,
        SLOT,
        WAITER,
        LANE,
        ADMISSION,
        CANDIDATE,
        ROOM,
        BUDGET_OF_LIMIT,
        BUDGET,
        CREATED,
        TREE,
        TREE_OF,
        ENTRY,
    ):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
