"""The backlog of routes on which work is chosen in order, and the turns that it took."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A scheduled execution of an ordered route that no worker has. `rank` is minus its priority. `root_at`: when its outermost
# workflow was created, or it itself. Its message on the route stands for a turn, and not for this execution. Insert and delete
# only, but for a new priority.
BACKLOG = """
create table backlog (
    execution_id uuid primary key,
    queue text not null,
    rank smallint not null,
    tenant text not null,
    root_at timestamptz not null,
    ready_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
TURN = "create index backlog_turn on backlog (queue, rank, tenant, root_at, ready_at, execution_id)"
# A queue on which work is chosen in order: an execution with a priority waited there, or more than one tenant has actions there.
# Not unique: no transaction waits for the row of another one, which may stay open for long. Insert and delete only.
ORDERED_ROUTE = """
create table ordered_route (
    queue text not null,
    since timestamptz not null default clock_timestamp()
)
"""
ORDERED_INDEX = "create index ordered_route_queue on ordered_route (queue)"
# The turns of an ordered route so far. `rank`: that of the last turn that went to a lower priority. A claim locks the row.
ROUTE_TURN = """
create table route_turn (
    queue text primary key,
    turns bigint not null default 0,
    rank smallint not null default 32767
) with (fillfactor = 50)
"""
# The tenant that had the last turn among the executions of one rank.
TENANT_TURN = """
create table tenant_turn (
    queue text,
    rank smallint,
    tenant text not null,
    primary key (queue, rank)
) with (fillfactor = 50)
"""
# A tenant with actions on a queue. Insert only, and not unique either.
ROUTE_TENANT = "create table route_tenant (queue text not null, tenant text not null)"
TENANT_INDEX = "create index route_tenant_queue on route_tenant (queue, tenant)"
TENANTS = """
insert into route_tenant (queue, tenant)
select distinct queue, split_part(name, '::', 1) from namespace where kind = 'action'
"""
SHARED = "insert into ordered_route (queue) select queue from route_tenant group by queue having count(*) > 1"


def upgrade() -> None:
    for statement in (
        *(BACKLOG, TURN, ORDERED_ROUTE, ORDERED_INDEX, ROUTE_TURN, TENANT_TURN, ROUTE_TENANT, TENANT_INDEX),
        *(TENANTS, SHARED),
    ):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
