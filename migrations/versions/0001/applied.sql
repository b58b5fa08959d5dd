-- The functions of migrations/functions that were applied last: `digest` is of the file and of its planner profile,
-- `release` the version of Penstock that applied it. One of an older release leaves alone what a newer one has applied.
create table penstock_function (
    name text primary key,
    digest text not null,
    release text not null,
    applied_at timestamptz not null default clock_timestamp()
);
