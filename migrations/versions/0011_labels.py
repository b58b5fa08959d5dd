"""Labels of executions, and indexes for lists by label or tenant."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# A label of an execution that is not archived. `child`: the execution has a parent. Insert and delete only.
LABEL = """
create table if not exists label (
    execution_id uuid not null,
    key text not null,
    value text not null,
    tenant text not null,
    child boolean not null,
    primary key (execution_id, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
# An index that begins with the execution would not help a list, which reads the newest executions of one label.
LABEL_NEWEST = "create index if not exists label_newest on label (tenant, key, value, child, execution_id)"
# A label of an archived execution, with the status in which it ended. A list reads rows of the archive only for its page.
ARCHIVED = """
create table if not exists archived_label (
    id uuid not null,
    key text not null,
    value text not null,
    tenant text not null,
    child boolean not null,
    status text not null,
    finished_at timestamptz not null,
    primary key (id, key, finished_at)
) partition by range (finished_at)
"""
ARCHIVED_NEWEST = """
create index if not exists archived_label_newest on archived_label (tenant, key, value, child, id)
"""
# Few executions do not complete: without this index, a list of the failed ones would read all that completed.
ARCHIVED_BAD = """
create index if not exists archived_label_bad on archived_label (tenant, key, value, child, status, id)
where status <> 'completed'
"""
# The daily partitions are made after the functions are applied: an execution that is archived before has a place here.
DEFAULT = "create table if not exists archived_label_default partition of archived_label default"
# An attempt that was interrupted has left its tables: the indexes of the archive are built in transactions of their own.
TABLES = (LABEL, LABEL_NEWEST, ARCHIVED, ARCHIVED_NEWEST, ARCHIVED_BAD, DEFAULT)

# A list of a small tenant would otherwise read the rows of all others. An index of a partitioned table cannot be built
# concurrently: each partition gets its own, and the index of the table, which has no rows, takes them over.
TENANT = "(split_part(namespace, '::', 1), id)"
WHOLE = f"create index concurrently archive_tenant on archive {TENANT}"
# The index of the table alone has no rows to read, so it is built at once and without `concurrently`.
ON_TABLE = f"create index concurrently if not exists archive_tenant on only archive {TENANT}"
# Those without an index of it. A partition that was made since has one, and so has one of an interrupted attempt.
PARTITIONS = text("""
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = to_regclass('archive') and not exists (
    select from pg_inherits a join pg_index x on x.indexrelid = a.inhrelid
    where a.inhparent = to_regclass('archive_tenant') and x.indrelid = c.oid)
order by 1
""")
WORKS = text("select exists (select from process)")


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
    if not op.get_bind().execute(WORKS).scalar():  # an empty database gets all versions in one transaction
        op.execute(WHOLE.replace(" concurrently", ""))
        return
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        op.execute(ON_TABLE.replace(" concurrently", ""))
        for (partition,) in connection.execute(PARTITIONS).all():
            index = f"{partition}_tenant"
            op.execute(f'drop index concurrently if exists "{index}"')
            op.execute(f'create index concurrently "{index}" on "{partition}" {TENANT}')
            op.execute(f'alter index archive_tenant attach partition "{index}"')


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
