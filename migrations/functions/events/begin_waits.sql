-- Begin the waits of tasks that have just become waiting. A task of the action `inquiry` gets an inquiry. A task of the action
-- `wait_for_event` gets a row of `event_wait`, where events find it, and a timer for its timeout. An event that is stored after
-- this commit finds the wait. An event that was stored before the row's `since` does not count, even if it is matched later.
-- planner: lookups
create or replace function begin_waits(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_asking uuid[];
    v_asked jsonb[];
begin
    with begun as (
        insert into event_wait (execution_id, tenant, trigger, path, key, since)
        select e.id, split_part(n.name, '::', 1), p.params ->> 'trigger', p.params -> 'path', p.params ->> 'key',
            clock_timestamp()
        from execution e join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
        where e.id = any (p_ids) and n.action = 'wait_for_event'
        returning execution_id, since
    )
    insert into timer (due_at, kind, execution_id)
    select b.since + make_interval(secs => (p.params ->> 'timeout')::double precision), 'total', b.execution_id
    from begun b join payload p on p.execution_id = b.execution_id
    where p.params ->> 'timeout' is not null;

    insert into event_path (trigger, path)
    select distinct w.trigger, w.path from event_wait w
    where w.execution_id = any (p_ids) and w.path is not null
        and not exists (select from event_path k where k.trigger = w.trigger and k.path = w.path)
    order by 1, 2
    on conflict do nothing;

    select array_agg(e.id), array_agg(p.params) into v_asking, v_asked
    from execution e join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
    where e.id = any (p_ids) and n.action = 'inquiry';
    if v_asking is null then
        return '{}';
    end if;
    return ask_inquiries(v_asking, v_asked);
end $$;
