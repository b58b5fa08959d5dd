-- Figures of the whole installation, for the metrics of every replica, in one row. One replica measures them again when they
-- are due. `body` is the JSON of `penstock.store.upkeep.figures`.
create table figures (
    only_row boolean primary key default true check (only_row),
    measured_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp(),
    body jsonb not null default '{}'
) with (fillfactor = 10);
insert into figures default values;
