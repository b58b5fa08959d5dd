-- Record that messages of these open executions are staged again. Return the executions of which the caller has to stage the
-- message, or null. An execution is left out if another replica is handling it now, or has staged its message within `p_age`.
-- planner: lookups
create or replace function mark_restaged(p_ids uuid[], p_age interval) returns uuid[]
language plpgsql
as $$
declare
    v_marked uuid[];
begin
    with found as (
        select l.execution_id from live l
        where l.execution_id = any (p_ids) and (l.restaged_at < clock_timestamp() - p_age) is not false
        order by l.execution_id for no key update skip locked
    ), marked as (
        update live l set restaged_at = clock_timestamp() from found f where l.execution_id = f.execution_id
        returning l.execution_id
    )
    select array_agg(execution_id order by execution_id) into v_marked from marked;
    return v_marked;
end $$;
