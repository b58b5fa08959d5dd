-- What functions hand to each other.

-- A message that was staged: one envelope. What returns it also tells the caller to publish it after the commit.
create type staged as (outbox_id bigint, queue text, ids uuid[]);

-- What has slots: a limit and, where it is grouped, the values of its parameters (else '').
create type limit_key as (limit_id integer, group_value text);

-- An execution that may start. `rank` is minus its priority; `keys` are those that it needs a slot of, null where no limit
-- covers it; `away`: no live worker runs it. Where it waits, or did: its `lane`; its `turn` among the groups of `fair_limit`
-- (of that limit's key with `fair_key`, it belongs to `fair_group`); since when nobody could start before it; and the limit
-- that it stood before.
create type candidate as (
    id uuid, namespace_id integer, queue text, envelope smallint, away boolean, attempt smallint, rank smallint,
    ready_at timestamptz, keys limit_key[], lane uuid, fair_limit integer, fair_key text, fair_group text, turn bigint,
    since timestamptz, gate_limit integer
);

-- How many more may start under a key: its limit less its holders, and no more than its rate allows.
create type room as (limit_id integer, group_value text, held integer, allowed integer, rated boolean, free integer);

-- A key that an execution holds a slot of, or waits for.
create type held as (execution_id uuid, limit_id integer, group_value text);
