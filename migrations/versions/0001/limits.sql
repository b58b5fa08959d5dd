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
