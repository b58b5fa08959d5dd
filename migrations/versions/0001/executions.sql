-- The hot row of an execution. `keys` are those of its limits, as of when it was last admitted or put in line.
-- `ready_at` is its place in line: when it, or its retry, became ready, and nothing else changes it. `since`: from when on it
-- waits for what it waits for now (a limit, a worker), where that is later: a limit let it in, or it was taken back from a
-- worker. `timed`: such a wait may take too long (timeouts.queued, timeouts.schedule_to_start). `ends_as`: what it was asked to
-- end as while a worker has it.
-- Narrow, and no index names a column that a move changes, and its page has room for all the versions of a row that an
-- older snapshot keeps: so updates stay HOT.
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

-- What an execution was given. Insert only.
create table payload (
    execution_id uuid primary key,
    params jsonb not null,
    options jsonb,
    origin jsonb
);
-- What is traced carries a W3C trace context in its origin. Of most installations, and of what is not sampled, nothing does.
create index payload_traced on payload (execution_id) where origin ? 'trace';

-- Traced executions that have ended, and that have a span to send. Insert and delete only.
create table untraced (
    execution_id uuid primary key,
    at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What came of it. Insert only; `error` is that of the last attempt, and whatever ended badly has one.
create table result (
    execution_id uuid primary key,
    result jsonb,
    error jsonb
);
-- Few, and what people look for: without it, a list of those that failed reads all that went well. (No index names the status
-- of an execution, so that its moves stay HOT.)
create index result_error on result (execution_id) where error is not null;

-- One row for each attempt that did not complete. `outcome`: failed (tried again or not), timeout, cancelled, lost, deferred,
-- waiting (for an answer), handed_back. When it began is in the history. They go to the archive with their execution.
create table attempt (
    execution_id uuid not null,
    attempt integer not null,
    outcome text not null,
    worker text,
    at timestamptz not null default clock_timestamp(),
    error jsonb,
    primary key (execution_id, attempt)
);

-- The executions that are open (not final) and not waiting for a slot: recovery looks here. Insert and delete only, but for
-- `restaged_at`: when a message of it was last staged anew, since the one before was nowhere.
create table live (
    execution_id uuid primary key,
    restaged_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The owners of running attempts: a row for each batch that a worker claimed. Insert and delete only.
create table claim (
    id uuid primary key,
    worker uuid not null,
    executions uuid[] not null,
    claimed_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index claim_worker on claim (worker);

-- Scheduled executions that a worker was offered and could not take: it lacks the action, or `executor`, its task executor,
-- was full; or (no `worker`) that are known to be lacked by some of their route. They wait here, and not on their route, for a
-- worker that can. Insert and delete only.
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

-- Every executor and worker that lives, with its last heartbeat. `id` is random: a restart inherits nothing. `lock_key` is the
-- advisory lock that the session of its heartbeats holds since `locked_at`, and loses when the process ends (none behind a
-- pooler); `unlocked_at`: since when it was seen free. `executors`: what its task executors said of themselves by then, by name.
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

-- Questions to humans that executions wait for: at most one for each.
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

-- Instants at which something must be looked at, by `kind`: it is `ready` (a retry, a delay); it waits for too long for a worker
-- (`start`) or a limit (`queued`); it took too long in `total`; it must not begin any more (`expires`); it gives way (`yield`).
create table timer (
    due_at timestamptz not null,
    kind text not null,
    execution_id uuid not null,
    primary key (due_at, execution_id, kind)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timer_execution on timer (execution_id);

-- Statuses and the legal moves between them of each subject (execution, fire, ...), as penstock.language.moves declares them.
create table legal_move (
    subject text not null,
    old text not null,
    new text not null,
    primary key (subject, old, new)
);
