-- Lock workflows (in the order of their ids) for a worker that remembers them, without waiting. Return whether they still are as
-- the worker remembers: they run, and no transaction has written another version of them, or asked them to stop. If not, the
-- worker does nothing with them.
-- planner: lookups_planned_once
create or replace function lock_remembered(p_ids uuid[], p_versions integer[], p_stops integer[]) returns boolean
language plpgsql
as $$
declare
    v_id uuid;
begin
    foreach v_id in array p_ids loop
        if not pg_try_advisory_xact_lock(hashtextextended(v_id::text, 11)) then
            return false;
        end if;
    end loop;
    for i in 1 .. cardinality(p_ids) loop
        -- A transaction that cancels the workflow together with its tasks has this row first.
        perform from workflow w
        where w.execution_id = p_ids[i] and w.version = p_versions[i] and w.stops = p_stops[i]
            and exists (select from execution e where e.id = p_ids[i] and e.status = 'running')
        for no key update skip locked;
        if not found then
            return false;
        end if;
    end loop;
    return true;
end $$;
