-- The types that functions pass to each other.

-- A staged message: one envelope. A function that stages messages returns them, '{}' for none. The process that began the
-- transaction publishes them after its commit. A hint has no row in the outbox (`outbox_id` 0): if it is lost, a later poll
-- finds the work.
create type message as (outbox_id bigint, queue text, ids uuid[]);

-- A row that existed already under its key: the id that the caller passed (`given`), and the id of the existing row (`kept`).
create type replaced_id as (given uuid, kept uuid);

-- An attempt that a worker has claimed, with all that it needs to run. `waited`: seconds since the execution was ready.
-- `carry`: the values that the last deferral carried over. For a task of a workflow: the `workflow` (its execution), the
-- outermost workflow around that (`root`), and the name of the `task`. `trace`: the W3C trace context of a traced execution.
create type claimed_attempt as (
    execution_id uuid, attempt integer, failures integer, namespace text, definition_id integer,
    waited double precision, params text, options text, carry text, workflow uuid, root uuid, task text, trace text
);

-- The number of further attempts (`room`) for which a worker's task executor has room. The definitions that the task executor
-- runs share the room: each has a row.
create type executor_room as (definition_id integer, executor text, room integer);

-- An execution that has just ended, and its outcome. `claimed`: a worker had claimed it. `followed`: its workflow, or an
-- action that follows it, has to be notified.
create type ended as (
    id uuid, parent uuid, status text, claimed boolean, followed boolean, result jsonb, error jsonb
);

-- How the execution of a fire ended.
create type ended_fire as (
    execution_id uuid, schedule text, due_at timestamptz, status text, finished_at timestamptz, error jsonb
);

-- A fire that has lost its execution. `now` is the database's clock.
create type lost_fire as (
    ref text, due_at timestamptz, execution_id uuid, kind text, definition_id integer, namespace_id integer,
    recoveries integer, now timestamptz
);

-- A key, of which slots are counted: a limit and, if the limit is grouped, the values of its parameters (otherwise '').
create type limit_key as (limit_id integer, group_value text);

-- An execution that asks for admission. `kind`, `queue` and `envelope` are those of its namespace; `rank` is minus its
-- priority. `keys` are the keys of which it needs a slot, null where no limit covers it. `away`: no live worker runs it. The
-- other columns are set if it waits or waited: its `lane`; its `turn` among the groups of the fair limit `fair_limit` (at the
-- key `fair_key` it belongs to `fair_group`); `since` when it stood in line at its gate; and the limit of that gate.
create type candidate as (
    id uuid, namespace_id integer, kind text, queue text, envelope smallint, away boolean, attempt integer, rank smallint,
    ready_at timestamptz, keys limit_key[], lane uuid, fair_limit integer, fair_key text, fair_group text, turn bigint,
    since timestamptz, gate_limit integer
);

-- The initial state of an execution that is created together with its slots: its status, the keys of its slots, and the
-- instant.
create type birth as (status text, keys limit_key[], born_at timestamptz);

-- The room under a key. `free`: how many more executions may start, which is the limit `allowed` minus the holders `held`,
-- bounded by the rate. `rated`: the limit has a rate.
create type room as (limit_id integer, group_value text, held integer, allowed integer, rated boolean, free integer);

-- A key that an execution holds a slot of, or waits for.
create type held as (execution_id uuid, limit_id integer, group_value text);
