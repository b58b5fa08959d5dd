-- Repair invariant I3s: free slots that their executions do not need any more, and promote the next waiters.
create or replace function mend_slots(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_held held[];
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    select array_agg((s.execution_id, s.limit_id, s.group_value)::held) into v_held
    from slot s left join execution e on e.id = s.execution_id
    where s.execution_id = any (p_ids)
        and (e.id is null or e.status not in ('scheduled', 'running', 'canceling', 'waiting')
             or (s.limit_id, s.group_value)::limit_key <> all (e.keys));
    if v_held is null then
        return '{}';
    end if;
    return release(v_held, null);
end $$;
