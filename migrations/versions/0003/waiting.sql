-- Tasks of workflows that wait for an event. What their filter says is in the payload. Where it asks that what is at
-- `path` of the event equals a value, only those events are tried that have its `key` there.
create table event_wait (
    execution_id uuid primary key,
    tenant text not null,
    trigger text not null,
    path jsonb,
    key text,
    since timestamptz not null
);
create index event_wait_trigger on event_wait (trigger, tenant, key);

-- At which paths the filters of a trigger look: a few rows for each trigger, which stay.
create table event_path (
    trigger text not null,
    path jsonb not null,
    primary key (trigger, path)
);

-- What waiting tasks run: nothing that a worker has. Their namespaces are placed on `waiting`, which is no queue.
insert into definition (kind, ref, digest, body) values ('wait', 'wait_for_event', '', '{}'), ('wait', 'inquiry', '', '{}');

-- Executions that have just become waiting ask what they have to ask, and may be found by events from now on: by those
-- that are stored once this has committed. An event that was stored before `since` came before the wait, though it may
-- be looked at later.
create function begin_waits(p_ids uuid[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
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

-- waiting -> completed, with what came: an event, an answer. Whoever moves the execution has won; timeouts and
-- cancellations race for the same move. Returns what it staged and, as `moved`, the ids that it really moved.
create function complete_waits(p_ids uuid[], p_results text[], p_reasons text[]) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
as $$
declare
    v_moved uuid[];
    v_roots uuid[];
begin
    perform from execution where id = any (p_ids) and status = 'waiting' order by id for no key update;
    with moved as (
        update execution e set status = 'completed', finished_at = clock_timestamp(), reason = d.reason
        from unnest(p_ids, p_results, p_reasons) as d (id, result, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'waiting'
        returning e.id, e.parent, d.result
    ), told as (
        insert into result (execution_id, result) select id, result::jsonb from moved
    )
    select array_agg(id), array_agg(id) filter (where parent is null) into v_moved, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    delete from event_wait where execution_id = any (v_moved);
    return query select null::bigint, 'moved', v_moved;
    return query select * from close_executions(v_moved, v_roots, v_moved);
end $$;
