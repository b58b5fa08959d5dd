-- Return the attempts, other than completed ones, of an open or archived execution. A role that cannot read the tables gets them
-- only for executions that it started, as in find_executions.
-- planner: lookups_planned_once
create or replace function failed_attempts(p_id uuid)
returns table (attempt integer, outcome text, worker text, at timestamptz, error text)
language plpgsql stable security definer
as $$
declare
    v_open uuid[] := array[p_id];
    v_archived uuid[] := array[p_id];
begin
    if not has_table_privilege(session_user, 'execution'::regclass, 'select') then
        v_open := own_executions(v_open);
        v_archived := own_archived(v_archived);
    end if;
    return query
    select t.attempt, t.outcome, t.worker, t.at, t.error::text from attempt t where t.execution_id = any (v_open)
    union all
    select t.attempt, t.outcome, t.worker, t.at, t.error::text
    from archive a cross join jsonb_to_recordset(a.attempts)
        as t (attempt integer, outcome text, worker text, at timestamptz, error jsonb)
    where a.id = any (v_archived);
end $$;
