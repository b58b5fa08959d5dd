-- Insert the scheduled executions of a queue into its backlog, and mark the queue as ordered if any were inserted. From then on,
-- a message on the queue stands for a turn. A parked execution is left out, and so is one that is already claimed. Within a
-- priority and a tenant, workflows that began earlier come first, together with their tasks.
-- planner: lookups_planned_once
create or replace function join_backlog(p_queue text, p_ids uuid[]) returns void
language plpgsql
as $$
begin
    insert into backlog (execution_id, queue, rank, tenant, root_at, ready_at)
    select e.id, p_queue, -e.priority, split_part(n.name, '::', 1),
        case when e.parent is null then e.created_at else coalesce(r.created_at, e.created_at) end, e.ready_at
    from execution e join namespace n on n.id = e.namespace_id
    left join execution r on r.id = root_of(e.parent)
    where e.id = any (p_ids) and e.status = 'scheduled' and n.queue = p_queue
        and not exists (
            select from backlog b
            where b.execution_id = e.id and b.queue = p_queue and b.rank = -e.priority and b.ready_at = e.ready_at)
        and not exists (select from parked k where k.execution_id = e.id and k.queue = p_queue)
    order by e.id
    on conflict (execution_id) do update
        set queue = excluded.queue, rank = excluded.rank, root_at = excluded.root_at, ready_at = excluded.ready_at;
    if found then
        insert into ordered_route (queue) select p_queue where not exists (select from ordered_route where queue = p_queue);
    end if;
end $$;
