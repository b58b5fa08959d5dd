-- Stage again the offered executions that this worker has no slot for, so that another worker can claim them at once. Each goes
-- to its own route, even if it came by another one. Two kinds of executions on this route are left out. `p_kept` are executions
-- that the worker has tried to claim, or that have no room in their task executor. Executions of actions in `p_lacking` are
-- parked by park_executions.
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
