-- Return the archived executions among `p_ids` that the role of this session started, and the tasks of such executions, at any
-- depth (see own_executions).
create or replace function own_archived(p_ids uuid[]) returns uuid[]
language plpgsql stable
as $$
begin
    return array(
        select a.id from archive a
        where a.id = any (p_ids)
            and exists (select from archive r where r.id = a.root and r.origin ->> 'role' = session_user));
end $$;
