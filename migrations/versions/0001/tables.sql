-- What is defined: content-addressed and immutable. A run keeps the version it started with.
create table definition (
    id integer generated always as identity primary key,
    kind text not null,
    ref text not null,
    digest text not null,
    body jsonb not null,
    created_at timestamptz not null default now(),
    unique (kind, ref, digest)
);

-- Which version of each definition is current. `trigger` is set for rules, which are looked up by it.
create table catalog (
    kind text not null,
    ref text not null,
    definition_id integer not null references definition (id),
    enabled boolean not null default true,
    trigger text,
    updated_at timestamptz not null default now(),
    primary key (kind, ref)
);
create index catalog_trigger on catalog (trigger) where trigger is not null;

-- One row: what concerns all processes. `announced`: the statuses that whoever listens is told of.
create table cluster (
    id integer primary key default 1 check (id = 1),
    resumed_at timestamptz not null default '-infinity',
    announced text[] not null default '{}'
);
insert into cluster default values;

-- Namespaces in use (tenant::pack::workflow::task), each with the queue it is routed to,
-- how many share an envelope (one, where they take long), and the limits that apply to it now; for those under limits also, since when no live
-- worker serves it.
create table namespace (
    id integer generated always as identity primary key,
    name text not null unique,
    action text not null,
    queue text not null,
    envelope smallint not null default 20,
    limits integer[] not null default '{}',
    away_since timestamptz
);

-- The hot row of an execution. `keys` are those of its limits, as of when it was last admitted or put in line.
-- Narrow, and no index names a column that a move changes, and its page has room for all the versions of a row that an
-- older snapshot keeps: so updates stay HOT.
create table execution (
    id uuid primary key,
    status text not null,
    attempt smallint not null default 0,
    failures smallint not null default 0,
    recoveries smallint not null default 0,
    priority smallint not null default 0,
    item integer not null default -1,
    namespace_id integer not null,
    definition_id integer not null,
    parent uuid,
    claim uuid,
    ready_at timestamptz not null default now(),
    not_before timestamptz,
    created_at timestamptz not null default now(),
    finished_at timestamptz,
    task text,
    reason text,
    keys text[]
) with (fillfactor = 25, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_threshold = 500);
create unique index execution_child on execution (parent, task, item) where parent is not null;

-- What an execution was given. Insert only.
create table payload (
    execution_id uuid primary key,
    params jsonb not null,
    options jsonb,
    origin jsonb
);

-- What came of it. Insert only; `error` is that of the last attempt.
create table result (
    execution_id uuid primary key,
    result jsonb,
    error jsonb
);

-- One row for each attempt that did not complete: failed, lost, timed out, deferred. They go to the archive with their
-- execution.
create table attempt (
    execution_id uuid not null,
    attempt smallint not null,
    outcome text not null,
    worker text,
    at timestamptz not null default clock_timestamp(),
    error jsonb,
    primary key (execution_id, attempt)
);

-- The executions that are open (not final) and not waiting for a slot. Insert and delete only: recovery looks here.
create table live (
    execution_id uuid primary key
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Who holds running attempts: a row for each batch that a worker claimed. Insert and delete only.
create table claim (
    id uuid primary key,
    worker uuid not null,
    executions uuid[] not null,
    claimed_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index claim_worker on claim (worker);

-- Every executor and worker that lives, with its last heartbeat. `id` is random: a restart inherits nothing.
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
    started_at timestamptz not null default clock_timestamp(),
    beat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- Limits on how many executions run at once, or how many start in a window. A limit that is grouped by other parameters
-- is another limit: slots held under its old keys do not count under the new ones.
create table concurrency_limit (
    id integer generated always as identity primary key,
    ref text not null,
    definition_id integer not null references definition (id),
    scope text not null,
    max integer not null,
    by text[] not null default '{}',
    fair text[] not null default '{}',
    when_full text not null default 'enqueue',
    max_waiting integer,
    rate_count integer,
    rate_seconds double precision,
    while_waiting text not null default 'release',
    unique (ref, by)
);

-- A slot held by an execution's attempt. Occupancy of a key is counted here, under the key's lock.
create table slot (
    key text not null,
    execution_id uuid not null,
    attempt smallint not null,
    admitted_at timestamptz not null default clock_timestamp(),
    primary key (key, execution_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Executions that wait for slots, in lanes: those of a namespace that need the same keys. First in, first out within
-- a rank (minus the priority) and, where a limit is fair, within a turn. `since`: when it joined the line.
create table waiter (
    lane text not null,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    execution_id uuid not null,
    since timestamptz not null default clock_timestamp(),
    fair_group text,
    primary key (lane, rank, turn, ready_at, execution_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index waiter_execution on waiter (execution_id);
create index waiter_fair on waiter (fair_group, rank, turn) where fair_group is not null;

-- A lane stands before one gate: a key of its keys that is full, `worker:<namespace>` while no worker lives that runs it,
-- or `regroup` when limits changed. rank ... execution_id are its first waiter's place: a promotion begins to read there,
-- not at what earlier promotions deleted. Before a gate, lanes stand in the order of that place; a turn counts only
-- before the key between whose groups turns are taken. `admitted` were let in since `began_at`.
create table lane (
    id text primary key,
    namespace_id integer not null,
    keys text[] not null,
    gate text not null,
    fair text,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    execution_id uuid not null,
    moved_at timestamptz not null default clock_timestamp(),
    began_at timestamptz not null default clock_timestamp(),
    admitted bigint not null default 0,
    place bigint generated always as (case when fair = gate then turn else 0 end) stored
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index lane_gate on lane (gate, rank, place, ready_at, execution_id);
create index lane_shared on lane (gate) where cardinality(keys) > 1;
create index lane_fair on lane (fair) where fair is not null;

-- Keys to look at again at an instant. Insert and delete only, and not unique: nobody waits for a row of another's.
create table wake (
    key text not null,
    at timestamptz not null default clock_timestamp()
);
create index wake_at on wake (at);
create index wake_key on wake (key);

-- In which order executions were admitted. Written under the key's lock; order and limits are checked on it, and rates
-- are counted in it. `since`: from when on it was first in line for that key wherever its place was the best.
create sequence admission_seq;
create table admission (
    seq bigint not null default nextval('admission_seq'),
    key text not null,
    execution_id uuid not null,
    attempt smallint not null,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    since timestamptz not null,
    admitted_at timestamptz not null default clock_timestamp(),
    held integer not null,
    allowed integer not null,
    rated boolean not null
) partition by range (admitted_at);
create index admission_rate on admission (key, admitted_at) where rated;

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

-- Instants at which something must be looked at: retries, delays, deadlines.
create table timer (
    due_at timestamptz not null,
    kind text not null,
    execution_id uuid not null,
    primary key (due_at, execution_id, kind)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timer_execution on timer (execution_id);

-- Messages staged by the transactions that caused them; an envelope a row. On the PostgreSQL transport also the queue.
create table outbox (
    id bigint generated always as identity primary key,
    queue text not null,
    ids uuid[] not null,
    body bytea,
    message_id text,
    type text,
    headers jsonb,
    tries integer not null default 0,
    due_at timestamptz not null default clock_timestamp(),
    created_at timestamptz not null default clock_timestamp(),
    error text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index outbox_queue on outbox (queue, due_at);

-- Messages that cannot be handled, with the reason.
create table dead_letter (
    id uuid primary key,
    queue text not null,
    reason text not null,
    type text,
    message_id text,
    body bytea not null,
    headers jsonb not null default '{}',
    fingerprint text not null unique,
    count integer not null default 1,
    first_at timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp()
);
create index dead_letter_last on dead_letter (last_at);

-- Occurrences of triggers, by the database's time.
create table event (
    id uuid not null,
    trigger text not null,
    tenant text not null,
    payload jsonb not null,
    source text,
    created_at timestamptz not null default now(),
    primary key (id, created_at)
) partition by range (created_at);

-- Events whose rules nobody has looked at yet: message lost, they are found here. Insert and delete only.
create table unmatched (
    event_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Ends that nobody has looked at yet who follows them (workflows, callbacks): message lost, they are found here. Insert
-- and delete only; who deletes a row starts what follows, so that it starts once.
create table untold (
    execution_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Which messages were seen. Outlives the event's partition; has a retention of its own.
create table event_key (
    tenant text not null,
    trigger text not null,
    source text not null,
    message_id text not null,
    event_id uuid not null,
    digest text not null,
    created_at timestamptz not null default now(),
    primary key (tenant, trigger, source, message_id)
);
create index event_key_created on event_key (created_at);

-- One rule matched one event: at most one for each pair. Carries the id of the execution that it creates.
create table enforcement (
    event_id uuid not null,
    rule text not null,
    definition_id integer not null,
    execution_id uuid not null unique,
    status text not null,
    namespace_id integer,
    action_definition_id integer,
    priority smallint not null default 0,
    params jsonb,
    options jsonb,
    error text,
    created_at timestamptz not null default now(),
    primary key (event_id, rule)
);
create index enforcement_created on enforcement (created_at);

-- Idempotency keys of clients.
create table idempotency (
    tenant text not null,
    key text not null,
    execution_id uuid not null,
    digest text not null,
    created_at timestamptz not null default now(),
    primary key (tenant, key)
);
create index idempotency_created on idempotency (created_at);

-- Statuses and the legal moves between them, as penstock.moves declares them.
create table legal_move (
    old text not null,
    new text not null,
    primary key (old, new)
);
