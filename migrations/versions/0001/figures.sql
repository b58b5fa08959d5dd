-- The state of the whole installation, for the metrics of every replica: one row, which one replica measures again when it is due.
-- `body`: the JSON that `penstock.store.upkeep.figures` makes.
create table figures (
    only_row boolean primary key default true check (only_row),
    measured_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp(),
    body jsonb not null default '{}'
) with (fillfactor = 10);
insert into figures default values;
