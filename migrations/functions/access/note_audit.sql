-- Set the fields of a new audit row that its writer may not choose. These are the instant, the role of the session, and the
-- position and seals, which stay null until seal_audit writes them.
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
