-- What functions hand to each other.

-- A message that was staged: one envelope. A function that stages returns those it staged, '{}' for none; whoever began the
-- transaction publishes them after its commit.
create type message as (outbox_id bigint, queue text, ids uuid[]);

-- Something that is there already under its key: the id that was given for it now, and the one that it has.
create type replaced_id as (given uuid, kept uuid);

-- An attempt that a worker has claimed, with what running it takes. `waited`: seconds since it was ready.
create type claimed_attempt as (
    execution_id uuid, attempt smallint, failures smallint, namespace text, definition_id integer,
    waited double precision, params text, options text
);

-- An execution that has just ended, and what came of it. `claimed`: a worker had it. `followed`: its workflow, or an action
-- that comes after it, is to be told.
create type ended as (
    id uuid, parent uuid, status text, claimed boolean, followed boolean, result jsonb, error jsonb
);

-- How the execution of a fire ended.
create type ended_fire as (
    execution_id uuid, schedule text, due_at timestamptz, status text, finished_at timestamptz, error jsonb
);

-- A fire whose execution was lost. `now` is the database's clock.
create type lost_fire as (
    ref text, due_at timestamptz, execution_id uuid, kind text, definition_id integer, namespace_id integer,
    recoveries smallint, now timestamptz
);

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
