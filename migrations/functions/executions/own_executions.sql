-- Return the executions among `p_ids` that the role of this session started, and the tasks of such executions, at any depth. A
-- submit by a client's role stores the role in the origin of the execution. Archived executions are left out: see own_archived.
-- planner: lookups_planned_once
create or replace function own_executions(p_ids uuid[]) returns uuid[]
language plpgsql stable
as $$
begin
    return array(
        select x from unnest(p_ids) x
        where exists (select from payload p where p.execution_id = root_of(x) and p.origin ->> 'role' = session_user));
end $$;
