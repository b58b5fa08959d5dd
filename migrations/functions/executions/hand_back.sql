-- Stage again the executions that a message of the route `p_queue` offered, and for which this worker has no slot. Another worker
-- can then claim them at once. An execution of another route is staged on that route. These executions of `p_queue` are left out:
-- - `p_kept`: the worker has tried to claim them, or they have no room in their task executor.
-- - Executions of actions that the worker lacks (`p_lacking`), which park_executions parks.
create or replace function hand_back(p_ids uuid[], p_kept uuid[], p_queue text, p_lacking integer[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_queue text;
    v_size integer;
    v_ids uuid[];
begin
    for v_queue, v_size, v_ids in
        select n.queue, n.envelope, array_agg(e.id order by e.id)
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids) and e.status = 'scheduled'
            and (n.queue <> p_queue or e.id <> all (p_kept) and e.definition_id <> all (p_lacking))
        group by n.queue, n.envelope
    loop
        v_messages := v_messages || stage(v_queue, v_ids, v_size);
        if v_queue <> p_queue and exists (select from ordered_route where queue = v_queue) then
            perform join_backlog(v_queue, v_ids);
        end if;
    end loop;
    return v_messages;
end $$;
