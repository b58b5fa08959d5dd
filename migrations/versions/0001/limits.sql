-- A limit on how many executions run at once, or how many start in a window. If a limit is grouped by other parameters, it
-- becomes another row: slots under its old keys do not count under the new ones.
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

-- A slot: an attempt of an execution holds a key. The holders of a key are counted here, under the key's lock.
create table slot (
    limit_id integer not null,
    group_value text not null,
    execution_id uuid not null,
    attempt integer not null,
    admitted_at timestamptz not null default clock_timestamp(),
    primary key (limit_id, group_value, execution_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- An execution that waits for slots, in a lane. The order is first in, first out within a rank (minus the priority) and a
-- turn. Only a fair limit has turns: the groups that wait for one of its keys take turns. `since`: when the execution joined
-- the lane.
create table waiter (
    lane uuid not null,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    execution_id uuid not null,
    since timestamptz not null default clock_timestamp(),
    fair_limit integer,
    fair_key text,
    fair_group text,
    primary key (lane, rank, turn, ready_at, execution_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index waiter_execution on waiter (execution_id);
create index waiter_round on waiter (fair_limit, fair_key, rank, turn) where fair_limit is not null;
create index waiter_group on waiter (fair_limit, fair_group, rank, turn) where fair_limit is not null;

-- A lane: a queue of waiting executions of one namespace that need the same keys, and take turns by the same limit. It waits
-- for one gate, named by `gate_kind`: a limit's key that is full (`limit`); a live worker (`worker`: the lane stands aside,
-- and others pass); or the regrouping after its limits changed (`regroup`).
-- The columns `rank` to `execution_id` are the place of its first waiter: a promotion begins to read there, and not at rows
-- that earlier promotions deleted. Lanes at one key's gate are ordered by that place. A turn counts only at a key of the
-- limit that lets its groups take turns (`place`). `admitted` executions were admitted since `began_at`. Only a transaction
-- that has locked all of a lane's keys changes the lane and its waiters.
create table lane (
    id uuid primary key,
    namespace_id integer not null,
    keys limit_key[] not null,
    gate_kind text not null default 'limit',
    gate_limit integer,
    gate_group text,
    fair_limit integer,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    execution_id uuid not null,
    moved_at timestamptz not null default clock_timestamp(),
    began_at timestamptz not null default clock_timestamp(),
    admitted bigint not null default 0,
    place bigint generated always as (case when fair_limit = gate_limit then turn else 0 end) stored,
    check (gate_kind in ('limit', 'worker', 'regroup') and (gate_kind = 'limit') = (gate_limit is not null)
        and (gate_limit is null) = (gate_group is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index lane_gate on lane (gate_limit, gate_group, rank, place, ready_at, execution_id);
create index lane_shared on lane (gate_limit, gate_group) where cardinality(keys) > 1;
create index lane_aside on lane (namespace_id, rank, ready_at, execution_id) where gate_kind <> 'limit';
create index lane_regroup on lane (rank, ready_at, execution_id) where gate_kind = 'regroup';

-- A wake row: a request to the executors to look again, at an instant, at the lanes of a key, or at those of a namespace that
-- may have a worker again. Insert and delete only, and not unique: no transaction waits for the row of another one.
create table wake (
    limit_id integer,
    group_value text,
    namespace_id integer,
    at timestamptz not null default clock_timestamp(),
    check ((limit_id is null) = (group_value is null) and (limit_id is null) <> (namespace_id is null))
);
create index wake_at on wake (at);
create index wake_key on wake (limit_id, group_value);
create index wake_namespace on wake (namespace_id) where namespace_id is not null;

-- An admission of an execution under a key, written under the key's lock. `seq` is the order of admissions. Invariants of
-- order and limits are checked on these rows, and rates are counted in them. `since`: since when the execution stood in line
-- for this key, so that no execution with a worse place may have been admitted before it.
create sequence admission_seq;
create table admission (
    seq bigint not null default nextval('admission_seq'),
    limit_id integer not null,
    group_value text not null,
    execution_id uuid not null,
    attempt integer not null,
    rank smallint not null,
    turn bigint not null,
    ready_at timestamptz not null,
    since timestamptz not null,
    admitted_at timestamptz not null default clock_timestamp(),
    held integer not null,
    allowed integer not null,
    rated boolean not null
) partition by range (admitted_at);
create index admission_rate on admission (limit_id, group_value, admitted_at) where rated;
