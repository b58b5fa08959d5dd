-- Lock workflows in the order of `p_ids`, without waiting, for a worker that remembers their state. Return true if each still
-- runs, and no transaction has written another version of it, or asked it to stop. If the result is false, the worker must not
-- change the workflows.
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
        -- A transaction that cancels the workflow together with its tasks locks this row first.
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
