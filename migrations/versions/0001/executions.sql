-- An execution: the columns that its moves change. `keys` are the keys of its limits, as of its last admission or queueing.
-- `ready_at` is its place in line: the instant at which it, or its retry, became ready; nothing else changes it. `since`: the
-- beginning of its present wait for a limit or a worker, if that is later than `ready_at`: a limit admitted it, or it was
-- taken back from a worker. `timed`: that wait has a timeout (timeouts.queued, timeouts.schedule_to_start). `ends_as`: the
-- requested final status, while a worker still has it.
-- The row is narrow, no index names a column that a move changes, and its page has room for the versions that an older
-- snapshot keeps: so updates stay HOT.
create table execution (
    id uuid primary key,
    status text not null,
    attempt integer not null default 0,
    failures integer not null default 0,
    recoveries integer not null default 0,
    priority smallint not null default 0,
    timed boolean not null default false,
    item integer not null default -1,
    namespace_id integer not null,
    definition_id integer not null,
    parent uuid,
    claim uuid,
    ready_at timestamptz not null default clock_timestamp(),
    not_before timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    since timestamptz,
    task text,
    reason text,
    ends_as text,
    keys limit_key[]
) with (fillfactor = 25, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_threshold = 500);
create unique index execution_child on execution (parent, task, item) where parent is not null;

-- The parameters, options and origin of an execution. Insert only.
create table payload (
    execution_id uuid primary key,
    params jsonb not null,
    options jsonb,
    origin jsonb
);
-- A traced execution has a W3C trace context in its origin. In most installations few or none have.
create index payload_traced on payload (execution_id) where origin ? 'trace';

-- A traced execution that has ended, with a span that is still to be sent. Insert and delete only.
create table untraced (
    execution_id uuid primary key,
    at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The result of an execution. Insert only. `error` is that of the last attempt; every execution that ended badly has one.
create table result (
    execution_id uuid primary key,
    result jsonb,
    error jsonb
);
-- For lists of failed executions, which are few: without this index they would read all that completed. No index names the
-- status of an execution, so that its moves stay HOT.
create index result_error on result (execution_id) where error is not null;

-- An attempt that did not complete. `outcome`: failed (retried or not), timeout, cancelled, lost, deferred, waiting (for an
-- answer), handed_back. The history has the start of the attempt. The rows are archived with their execution.
create table attempt (
    execution_id uuid not null,
    attempt integer not null,
    outcome text not null,
    worker text,
    at timestamptz not null default clock_timestamp(),
    error jsonb,
    primary key (execution_id, attempt)
);

-- An execution that is open (not final) and does not stand in line: recovery looks here. Insert and delete only, except for
-- `restaged_at`: when a message of it was last staged again, since the former message was lost.
create table live (
    execution_id uuid primary key,
    restaged_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A batch of executions that a worker claimed together: it names the owner of running attempts. Insert and delete only.
create table claim (
    id uuid primary key,
    worker uuid not null,
    executions uuid[] not null,
    claimed_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index claim_worker on claim (worker);

-- A scheduled execution that waits here, and not on its route, for a worker that can run it. `worker` was offered the
-- execution and lacks the action, or its task executor `executor` was full. `worker` is null if some worker of the route was
-- already known to lack the action. Insert and delete only.
create table parked (
    execution_id uuid,
    queue text,
    definition_id integer not null,
    ready_at timestamptz not null,
    worker uuid,
    executor text,
    at timestamptz not null default clock_timestamp(),
    primary key (execution_id, queue)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index parked_work on parked (queue, definition_id, ready_at, execution_id);

-- An executor or worker, with its last heartbeat (`beat_at`). `id` is random: a restarted process is another row. `holding`
-- are the executions that the last heartbeat named, and `missing` those that it should have named. `lock_key` is the advisory
-- lock that the session of the heartbeats has held since `locked_at`, and loses when the process ends; null behind a pooler.
-- `unlocked_at`: since when the lock has been free. `executors`: the last reports of its task executors, by name.
create table process (
    id uuid primary key,
    kind text not null,
    name text not null,
    routes text[] not null default '{}',
    actions text[] not null default '{}',
    labels jsonb not null default '{}',
    concurrency integer not null default 0,
    state text not null default 'active',
    holding uuid[] not null default '{}',
    missing uuid[] not null default '{}',
    executors jsonb not null default '{}',
    started_at timestamptz not null default clock_timestamp(),
    beat_at timestamptz not null default clock_timestamp(),
    lock_key bigint,
    locked_at timestamptz,
    unlocked_at timestamptz
) with (fillfactor = 50);

-- An inquiry: the question to a human that an execution waits for, at most one for each execution.
create table inquiry (
    execution_id uuid primary key,
    status text not null default 'created',
    prompt text not null,
    schema jsonb,
    assignee text,
    default_answer jsonb,
    due_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    answered_at timestamptz,
    responder text,
    response jsonb
);
create index inquiry_due on inquiry (due_at) where status = 'created';

-- A timer of an execution. `kind` says what happens at `due_at`: the execution is requested (`ready`: a retry, a delay); a
-- suspended function wakes (`wake`); the execution ends if it still waits for a worker (`start`) or a limit (`queued`), or
-- has not ended (`total`), or has not begun (`expires`); or it gives way to a newer one (`yield`).
create table timer (
    due_at timestamptz not null,
    kind text not null,
    execution_id uuid not null,
    primary key (due_at, execution_id, kind)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timer_execution on timer (execution_id);

-- A legal move between two statuses of a subject (execution, fire, ...), as penstock.language.moves declares it.
create table legal_move (
    subject text not null,
    old text not null,
    new text not null,
    primary key (subject, old, new)
);
