-- How the whole installation does, for the metrics of every replica: one row, which one replica measures anew when it is due.
-- `body`: what `penstock.store.figures` makes of it.
create table figures (
    only_row boolean primary key default true check (only_row),
    measured_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp(),
    body jsonb not null default '{}'
) with (fillfactor = 10);
insert into figures default values;
