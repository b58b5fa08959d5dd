-- Set the priority of an execution and of its tasks, at any depth, that have not ended. `changed` are the executions that had
-- another priority. The rest depends on the status:
-- - A queued execution leaves its lane, and joins the lane again at its new place.
-- - A scheduled execution moves to its new place in the backlog of its route. A message is staged for it. A worker that claims at
--   this moment skips the rows that this transaction has locked, so an earlier message may claim nothing. The new message
--   replaces that one.
-- - An execution that waits keeps the instant at which it became ready.
-- planner: lookups
create or replace function set_priority(p_id uuid, p_priority smallint, out messages message[], out changed uuid[])
language plpgsql
as $$
declare
    v_tree uuid[];
    v_queued uuid[];
    r record;
begin
    v_tree := array(
        with recursive tree (id) as (
            select p_id
            union all
            select e.id from tree t join execution e on e.parent = t.id where e.finished_at is null
        )
        select id from tree);
    perform from execution where id = any (v_tree) and finished_at is null order by id for no key update;
    v_queued := array(select id from execution where id = any (v_tree) and status = 'queued' and priority <> p_priority);
    with moved as (
        update execution
        set priority = p_priority, status = case status when 'queued' then 'requested' else status end,
            reason = case when status = 'queued' and ends_as is null then 'its priority was changed' else reason end
        where id = any (v_tree) and finished_at is null and priority <> p_priority
        returning id
    )
    select coalesce(array_agg(id), '{}') into changed from moved;
    update held_execution set rank = -p_priority where execution_id = any (changed);
    -- A worker that claims a parked execution has locked its row in `parked`, and waits for the execution.
    update parked set rank = -p_priority where ctid = any (array(
        select ctid from parked where execution_id = any (changed) for update skip locked));
    messages := '{}';
    for r in
        select n.queue, n.envelope, array_agg(e.id order by e.ready_at, e.id) as ids
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (changed) and e.status = 'scheduled'
            and (p_priority <> 0 or exists (select from ordered_route o where o.queue = n.queue))
        group by n.queue, n.envelope
    loop
        perform join_backlog(r.queue, r.ids);
        messages := messages || stage(r.queue, r.ids, r.envelope);
    end loop;
    if v_queued <> '{}' then
        messages := messages || settle_moves(null, v_queued, held_by(v_queued));
    end if;
end $$;
