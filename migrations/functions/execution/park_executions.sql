-- What a worker cannot run, or has no room for in a task executor (p_full), waits in `parked` for a worker that can: on its
-- route the next message would bring it to the same worker again. Returns whether there is any.
-- Inserted in order: two workers that were offered the same executions do not wait for each other.
create or replace function park_executions(
    p_worker uuid, p_ids uuid[], p_full uuid[], p_queue text, p_lacking integer[], p_limited executor_room[]
) returns boolean
language plpgsql
as $$
begin
    insert into parked (execution_id, queue, definition_id, ready_at, worker, executor)
    select e.id, n.queue, e.definition_id, e.ready_at, p_worker,
        (select l.executor from unnest(p_limited) l where l.definition_id = e.definition_id)
    from execution e join namespace n on n.id = e.namespace_id
    where e.id = any (p_ids) and e.status = 'scheduled' and n.queue = p_queue
        and (e.definition_id = any (p_lacking) or e.id = any (p_full))
    order by e.id
    on conflict do nothing;
    return found;
end $$;
