-- Executions that have just become waiting ask what they have to ask, and may be found by events from now on: by those
-- that are stored once this has committed. An event that was stored before `since` came before the wait, though it may
-- be looked at later.
-- planner: lookups
create or replace function begin_waits(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_asked uuid[];
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
    select b.since + make_interval(secs => (p.params ->> 'timeout')::double precision), 'expire', b.execution_id
    from begun b join payload p on p.execution_id = b.execution_id
    where p.params ->> 'timeout' is not null;

    insert into event_path (trigger, path)
    select distinct w.trigger, w.path from event_wait w
    where w.execution_id = any (p_ids) and w.path is not null
        and not exists (select from event_path k where k.trigger = w.trigger and k.path = w.path)
    order by 1, 2
    on conflict do nothing;

    with asked as (
        insert into inquiry (execution_id, prompt, schema, assignee, default_answer, due_at)
        select e.id, p.params ->> 'prompt', nullif(p.params -> 'schema', 'null'), p.params ->> 'assignee',
            nullif(p.params -> 'default', 'null'),
            clock_timestamp() + make_interval(secs => (p.params ->> 'timeout')::double precision)
        from execution e join namespace n on n.id = e.namespace_id join payload p on p.execution_id = e.id
        where e.id = any (p_ids) and n.action = 'inquiry'
        returning execution_id
    )
    select array_agg(execution_id order by execution_id) into v_asked from asked;
    if v_asked is not null then
        return query select * from stage('inquiry.created', v_asked, 50);
    end if;
end $$;
