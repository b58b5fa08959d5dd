-- Stage executions again after the broker lost their messages (a purged queue, a lost disk). `p_queues` are the queues that are
-- empty at the broker. An execution is staged again if it has been requested or scheduled for longer than `p_age`, and its queue
-- is one of these. The execution must not be in the outbox, nor have been staged again within `p_age`. A scheduled execution that
-- has held a slot for longer than `p_age` is staged whatever its queue. If the clock of the database went back, an instant of an
-- execution that is to come counts as older than `p_age`: its age is unknown, and a message too many does no harm. All keep their place in line. A call looks at the next
-- `p_limit` open executions after the id `p_after`, so callers go through a deep backlog in steps. `next` is the id to continue
-- after, or null at the end.
-- planner: lookups
create or replace function restage_lost(
    p_age interval, p_after uuid, p_limit integer, p_queues text[], out messages message[], out next uuid
)
language plpgsql
as $$
declare
    v_ids uuid[];
    v_requested uuid[];
    v_queue text;
    v_size integer;
    v_scheduled uuid[];
begin
    messages := '{}';
    select w.ids, w.next into v_ids, next from walk_open(p_after, p_limit) w;
    if v_ids = '{}' then
        return;
    end if;

    select array_agg(e.id order by e.id) into v_requested
    from execution e
    where 'execution.requested' = any (p_queues) and e.id = any (v_ids) and e.status = 'requested'
        and coalesce(e.since, e.ready_at) not between clock_timestamp() - p_age and clock_timestamp() + interval '1 second'
        and e.not_before is distinct from held_until()
        and not exists (select from timer t where t.execution_id = e.id and t.kind = 'ready')
        and not exists (select from outbox o where o.queue = 'execution.requested' and e.id = any (o.ids));
    messages := stage('execution.requested', mark_restaged(v_requested, p_age), 50);

    for v_queue, v_size, v_scheduled in
        select n.queue, n.envelope, array_agg(e.id order by e.id)
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (v_ids) and e.status = 'scheduled'
            and coalesce(e.since, e.ready_at) not between clock_timestamp() - p_age and clock_timestamp() + interval '1 second'
            and (n.queue = any (p_queues) or exists (
                -- Other executions may wait for its slot, so it is staged even if its queue is not empty.
                select from slot s
                where s.limit_id = (e.keys[1]).limit_id and s.group_value = (e.keys[1]).group_value and s.execution_id = e.id
                    and s.admitted_at not between clock_timestamp() - p_age and clock_timestamp() + interval '1 second'))
            and not exists (select from outbox o where o.queue = n.queue and e.id = any (o.ids))
            and not exists (select from parked k where k.execution_id = e.id and k.queue = n.queue)
        group by n.queue, n.envelope
    loop
        messages := messages || stage(v_queue, mark_restaged(v_scheduled, p_age), v_size);
    end loop;
end $$;
