-- Start the executions among `p_ids` that kept their slots during a wait (`while_waiting: keep`): requested -> scheduled, in the
-- slots that they hold. Return them in `started`. The caller has just moved them out of waiting. The caller settles the other
-- executions, which join their lanes. Those have a limit with a cost or a breaker, where each attempt counts. Or their limits
-- have changed, they are held, or their workflow is paused.
-- planner: lookups
create or replace function start_kept(p_ids uuid[], out messages message[], out started uuid[])
language plpgsql
as $$
declare
    r record;
begin
    messages := '{}';
    started := '{}';
    if not exists (select from execution e where e.id = any (p_ids) and keeps_slots(e.keys)) then
        return;
    end if;
    perform lock_placement();
    started := array(
        select e.id from find_candidates(p_ids) c join execution e on e.id = c.id join namespace n on n.id = e.namespace_id
        where e.status = 'requested' and e.keys = c.keys and n.hold is null and n.kind = 'action'
            and not exists (select from paused_workflow p where p.execution_id = e.parent)
            and not exists (
                select from unnest(e.keys) k join concurrency_limit l on l.id = k.limit_id
                left join slot s on s.limit_id = k.limit_id and s.group_value = k.group_value and s.execution_id = e.id
                where s.execution_id is null or l.cost is not null or l.breaker is not null)
        order by e.id);
    if started = '{}' then
        return;
    end if;
    update slot s set attempt = e.attempt + 1
    from execution e cross join unnest(e.keys) k
    where e.id = any (started) and s.limit_id = k.limit_id and s.group_value = k.group_value and s.execution_id = e.id;
    insert into live (execution_id) select unnest(started) on conflict do nothing;
    for r in
        with moved as (
            update execution e set status = start_status(n.kind)
            from namespace n
            where e.id = any (started) and n.id = e.namespace_id
            returning e.id, e.ready_at, e.priority, e.timed, n.kind, n.queue, n.envelope
        )
        select kind, queue, envelope, array_agg(id order by ready_at, id) as ids, array_agg(id) filter (where timed) as timed,
            bool_or(priority <> 0) as prior
        from moved group by kind, queue, envelope
    loop
        if r.timed is not null then
            perform set_clocks(r.timed);
        end if;
        messages := messages || place_ready(r.kind, r.queue, r.ids, r.envelope, r.prior, false, true);
    end loop;
end $$;
