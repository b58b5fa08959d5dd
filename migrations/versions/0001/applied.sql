-- A function of migrations/functions as it was applied last. `digest` is the hash of its file and planner profile, and
-- `release` the version of Penstock that applied it. An older release does not replace a function that a newer one has
-- applied.
create table penstock_function (
    name text primary key,
    digest text not null,
    release text not null,
    applied_at timestamptz not null default clock_timestamp()
);
