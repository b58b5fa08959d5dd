-- Refuses moves of fires that are not declared. By row, as few fires ever move: what is written of most is their outcome.
create or replace function fire_moved() returns trigger
language plpgsql
as $$
begin
    if (old.status, new.status) not in (
        ('queued', 'created'), ('queued', 'skipped'),
        ('created', 'failed'),
        ('skipped', 'created'), ('skipped', 'queued'),
        ('failed', 'created'), ('failed', 'queued')
    ) then
        raise exception 'illegal move fire of % at %: % -> %', new.schedule, new.due_at, old.status, new.status
            using errcode = 'PN001';
    end if;
    return new;
end $$;

create or replace trigger fire_moved before update on fire
for each row when (old.status <> new.status) execute function fire_moved();
