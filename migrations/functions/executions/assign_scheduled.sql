-- Assign executions that this transaction has scheduled on a queue to workers with permits (take_permits): scheduled -> running.
-- Each gets a claim of that worker, and the history that the worker's own claim would write. The caller stages the executions
-- that are not in `assigned`. The first 100 of `p_ids` are considered, by priority and then in their order. These are not
-- assigned:
-- - Any execution, while other work waits in the backlog of the queue.
-- - An execution that is held or has expired.
-- - A task of a workflow that was asked to stop.
-- - A task that may run only once. Such a task would fail if the worker were lost before the task began.
-- The function writes the history itself, and tells the triggers so by the setting `penstock.moves`. The triggers accept it only
-- from the owner, so the function has the owner's rights.
-- planner: lookups_planned_once
create or replace function assign_scheduled(p_queue text, p_ids uuid[], out messages message[], out assigned uuid[])
language plpgsql security definer
as $$
declare
    v_all assignment[] := '{}';
    v_assigned assignment[];
    v_moved uuid[];
    r record;
begin
    messages := '{}';
    assigned := '{}';
    if not exists (select from permit where queue = p_queue)
        or exists (select from backlog where queue = p_queue) -- the backlog comes first
    then
        return;
    end if;
    perform set_config('penstock.moves', 'written', true);
    for r in
        select e.definition_id, array_agg(e.id order by e.priority desc, d.place) as ids
        from unnest(p_ids[1:100]) with ordinality d (id, place)
        join execution e on e.id = d.id and e.status = 'scheduled'
        join namespace n on n.id = e.namespace_id and n.queue = p_queue and n.hold is distinct from 'held'
        join payload p on p.execution_id = e.id and p.options #>> '{recovery,on_worker_loss}' is distinct from 'fail'
        where not exists (select from workflow w where w.execution_id = e.parent and w.stop_status is not null)
            and case when e.timed and e.attempt = 0 then not exists (
                select from timer t where t.execution_id = e.id and t.kind = 'expires' and t.due_at <= clock_timestamp())
                else true end
        group by e.definition_id order by max(e.priority) desc, min(d.place)
    loop
        with taken as materialized (
            select worker, channel, actor, claim, holder from unnest(take_permits(p_queue, r.definition_id, cardinality(r.ids)))
        ), takers as materialized (
            select worker, channel, actor, coalesce(claim, gen_random_uuid()) as claim, coalesce(holder, worker) as listener
            from taken group by worker, channel, actor, claim, holder
        ), placed as materialized (
            select d.id, t.worker from unnest(r.ids) with ordinality d (id, place)
            join (select worker, row_number() over (order by worker) as place from taken) t on t.place = d.place
        ), moved as (
            update execution e set status = 'running', attempt = e.attempt + 1, claim = d.worker
            from placed d where e.id = d.id and e.status = 'scheduled'
            returning e.id, e.attempt, e.failures, e.claim as worker, e.namespace_id, e.parent, e.task, e.reason,
                extract(epoch from clock_timestamp() - e.ready_at)::float8 as waited
        ), moves as (
            insert into history (execution_id, at, old, new, attempt, actor, reason)
            select m.id, clock_timestamp(), 'scheduled', 'running', m.attempt, t.actor, m.reason
            from moved m join takers t on t.worker = m.worker
        ), claims as (
            insert into claim (id, worker, executions, assigned)
            select t.claim, t.worker, array_agg(m.id order by m.id), true
            from moved m join takers t on t.worker = m.worker group by t.claim, t.worker
            on conflict (id) do update set executions = claim.executions || excluded.executions
        )
        select array_agg((x.listener, x.channel, x.claim, x.attempts)::assignment), (select coalesce(array_agg(id), '{}') from moved)
        into v_assigned, v_moved
        from (
            select t.listener, t.channel, t.claim, json_agg(json_build_array(
                m.id, m.attempt, m.failures, n.name, r.definition_id, m.waited, p.params::text, p.options::text,
                case when m.attempt > 1 then carried_over(m.id) end, m.parent, root_of(m.parent), m.task,
                (p.origin -> 'trace')::text)) as attempts
            from moved m join takers t on t.worker = m.worker
            join namespace n on n.id = m.namespace_id join payload p on p.execution_id = m.id
            group by t.listener, t.channel, t.claim) x;
        v_all := v_all || v_assigned;
        assigned := assigned || v_moved;
    end loop;
    perform set_config('penstock.moves', '', true);
    if assigned = '{}' then
        return;
    end if;
    if exists (select from cluster where announced <> '{}' or subscribed <> '{}') then
        perform announce_moves(assigned, array_fill('running'::text, array[cardinality(assigned)]));
        insert into subscribed_move (execution_id, status, attempt, namespace_id, parent, reason)
        select id, status, attempt, namespace_id, parent, reason from execution
        where id = any (assigned) and exists (select from cluster where 'running' = any (subscribed));
    end if;
    messages := notify_workers(v_all, p_queue);
end $$;
