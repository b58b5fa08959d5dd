-- Park executions of actions that a worker lacks (`p_lacking`), and executions that have no room in their task executor
-- (`p_full`). On their route, the next message could offer them to the same worker again. Return true if any were parked.
-- Mark the namespaces of lacked actions (`lacked`). Later executions of these namespaces are parked at once (place_ready), until
-- workers come or go. A namespace that another transaction has locked is marked at the next call of this function. Rows are
-- inserted in the order of ids, so two workers that were offered the same executions do not deadlock.
create or replace function park_executions(
    p_worker uuid, p_ids uuid[], p_full uuid[], p_queue text, p_lacking integer[], p_limited executor_room[]
) returns boolean
language plpgsql
as $$
begin
    insert into parked (execution_id, queue, definition_id, rank, ready_at, worker, executor)
    select e.id, n.queue, e.definition_id, -e.priority, e.ready_at, p_worker,
        (select l.executor from unnest(p_limited) l where l.definition_id = e.definition_id)
    from execution e join namespace n on n.id = e.namespace_id
    where e.id = any (p_ids) and e.status = 'scheduled' and n.queue = p_queue
        and (e.definition_id = any (p_lacking) or e.id = any (p_full))
    order by e.id
    on conflict do nothing;
    if not found then
        return false;
    end if;
    update namespace set lacked = true
    where id in (
        select n.id from namespace n
        where not n.lacked and n.id in (select e.namespace_id from execution e
                                        where e.id = any (p_ids) and e.definition_id = any (p_lacking))
        for no key update skip locked);
    return true;
end $$;
