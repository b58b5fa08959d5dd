"""Costs of executions under limits: weighted slots, and admissions with a cost that is settled later."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0004"
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
alter type room alter attribute held type numeric, alter attribute free type numeric, add attribute weighted boolean
"""


def upgrade() -> None:
    for statement in (LIMIT, SLOT, WAITER, LANE, ADMISSION, CANDIDATE, ROOM):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
