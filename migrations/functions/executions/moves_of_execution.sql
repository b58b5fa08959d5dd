-- Return the moves of an execution, oldest first. `p_created` and `p_finished` (null: it is open) limit which partitions are
-- read. A role that cannot read the tables gets them only for executions that it started, as in find_executions.
-- planner: tails
create or replace function moves_of_execution(p_id uuid, p_created timestamptz, p_finished timestamptz)
returns table (at timestamptz, old text, new text, attempt integer, actor text, reason text)
language plpgsql stable security definer
as $$
begin
    if not has_table_privilege(session_user, 'execution'::regclass, 'select')
        and own_executions(array[p_id]) || own_archived(array[p_id]) = '{}'
    then
        return;
    end if;
    return query
    select h.at, h.old, h.new, h.attempt, h.actor, h.reason from history h
    where h.execution_id = p_id and h.at >= p_created - interval '1 minute'
        and (p_finished is null or h.at <= p_finished + interval '1 minute')
    order by h.at;
end $$;
