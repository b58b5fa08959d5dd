-- Set what a row of the audit does not choose for itself: its instant, the role of its session, and no place in the chain yet.
create or replace function note_audit() returns trigger
language plpgsql
as $$
begin
    new.at := clock_timestamp();
    new.role := session_user;
    new.position := null;
    new.previous := null;
    new.seal := null;
    return new;
end $$;

create or replace trigger audit_noted before insert on audit for each row execute function note_audit();
