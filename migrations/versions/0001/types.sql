-- The types that functions pass to each other.

-- A message that was staged: one envelope. A function that stages returns those it staged, '{}' for none. The process that began
-- the transaction publishes them after its commit. A hint has no row in the outbox (0): if it is lost, a later look finds the work.
create type message as (outbox_id bigint, queue text, ids uuid[]);

-- Something that is there already under its key: the id that was given for it now, and the one that it has.
create type replaced_id as (given uuid, kept uuid);

-- An attempt that a worker has claimed, with what running it takes. `waited`: seconds since it was ready. `carry`: what its
-- last deferral carried over. Of a task: its `workflow` (the execution), the outermost one around it (`root`), its name.
-- `trace`: the W3C trace context that it carries, if it is traced.
create type claimed_attempt as (
    execution_id uuid, attempt integer, failures integer, namespace text, definition_id integer,
    waited double precision, params text, options text, carry text, workflow uuid, root uuid, task text, trace text
);

-- For how many more attempts of a definition a worker's task executor has room, together with its others.
create type executor_room as (definition_id integer, executor text, room integer);

-- An execution that has just ended, and what came of it. `claimed`: a worker had it. `followed`: its workflow, or an action
-- that comes after it, is to be told.
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

-- What has slots: a limit and, where it is grouped, the values of its parameters (else '').
create type limit_key as (limit_id integer, group_value text);

-- An execution that may start. `kind` is that of its namespace; `rank` is minus its priority; `keys` are those that it needs a slot of, null where no limit
-- covers it; `away`: no live worker runs it. Where it waits, or did: its `lane`; its `turn` among the groups of `fair_limit`
-- (of that limit's key with `fair_key`, it belongs to `fair_group`); since when no execution could start before it; and the limit
-- that it stood before.
create type candidate as (
    id uuid, namespace_id integer, kind text, queue text, envelope smallint, away boolean, attempt integer, rank smallint,
    ready_at timestamptz, keys limit_key[], lane uuid, fair_limit integer, fair_key text, fair_group text, turn bigint,
    since timestamptz, gate_limit integer
);

-- How an execution is born that has its slots with its row: its status, the keys that it has slots of, and the instant.
create type birth as (status text, keys limit_key[], born_at timestamptz);

-- How many more may start under a key: its limit less its holders, and no more than its rate allows.
create type room as (limit_id integer, group_value text, held integer, allowed integer, rated boolean, free integer);

-- A key that an execution holds a slot of, or waits for.
create type held as (execution_id uuid, limit_id integer, group_value text);
