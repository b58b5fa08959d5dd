-- What functions hand to each other.

-- A message that was staged: one envelope. What returns it also tells the caller to publish it after the commit.
create type staged as (outbox_id bigint, queue text, ids uuid[]);

-- What an execution that is ready to start needs. `rank` is minus its priority. `keys` are those of its limits, null
-- where it has none; `away`: no live worker runs it. In line, those of the same `lane` wait together; `fair` is the key
-- between whose groups turns are taken, `fair_group` the group.
create type wanted as (
    id uuid, namespace_id integer, queue text, envelope smallint, away boolean, attempt smallint, rank smallint,
    ready_at timestamptz, keys text[], lane text, fair text, fair_group text
);

-- How many more may start under a key: its limit less its holders, and no more than its rate allows.
create type room as (key text, held integer, allowed integer, rated boolean, free integer);

-- Where a waiter stands in its lane.
create type place as (rank smallint, turn bigint, ready_at timestamptz, execution_id uuid);

-- An execution that is to start, and the place that it had in its lane.
create type chosen as (
    lane text, rank smallint, turn bigint, ready_at timestamptz, execution_id uuid, since timestamptz,
    keys text[], fair text, gate text, queue text, envelope smallint
);

-- A key that an execution holds a slot of.
create type held as (execution_id uuid, key text);
