-- Write the waits of executions that have just become waiting for something outside (`outside` in `p_asked`). An outcome may have
-- come while the attempt still ran, by its callback address or by the id. Such an outcome settles the wait at once. If it came
-- with an event, the event has the execution as an effect.
-- planner: lookups
create or replace function wait_outside(p_ids uuid[], p_asked jsonb[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    r record;
begin
    perform lock_outside_name(x.tenant, x.name) from (
        select distinct split_part(n.name, '::', 1) as tenant, a.asked #>> '{outside,id}' as name
        from unnest(p_ids, p_asked) as a (id, asked) join execution e on e.id = a.id join namespace n on n.id = e.namespace_id
        where a.asked #>> '{outside,id}' is not null order by 1, 2) x;
    insert into outside_wait (execution_id, attempt, tenant, name, heartbeat, deadline_at, due_at)
    select a.id, e.attempt, split_part(n.name, '::', 1), a.asked #>> '{outside,id}', t.heartbeat, t.deadline_at,
        least(t.deadline_at, clock_timestamp() + make_interval(secs => t.heartbeat))
    from unnest(p_ids, p_asked) as a (id, asked)
    join execution e on e.id = a.id
    join namespace n on n.id = e.namespace_id
    join definition f on f.id = e.definition_id
    left join payload p on p.execution_id = a.id
    cross join lateral (select (a.asked #>> '{outside,heartbeat}')::double precision as heartbeat,
        clock_timestamp() + make_interval(secs => coalesce((a.asked #>> '{outside,timeout}')::double precision,
            timeout_of(p.options, f.body, 'waiting', null))) as deadline_at) t
    on conflict (execution_id) do update set attempt = excluded.attempt, name = excluded.name, heartbeat = excluded.heartbeat,
        deadline_at = excluded.deadline_at, due_at = excluded.due_at, since = clock_timestamp(), settled_at = null,
        outcome = case when outside_wait.attempt = excluded.attempt then outside_wait.outcome end,
        progress = null, progress_text = null, progress_at = null
    -- If this attempt has a row with an outcome, an early outcome wrote the row, and it is kept.
    where outside_wait.attempt <> excluded.attempt or outside_wait.outcome is null;
    for r in
        with early as (
            delete from early_outcome o using outside_wait w
            where w.execution_id = any (p_ids) and o.tenant = w.tenant and o.name = w.name
            returning o.tenant, o.name, o.outcome
        )
        select w.execution_id, w.attempt, w.outcome, null::uuid as event from outside_wait w
        where w.execution_id = any (p_ids) and w.outcome is not null and w.settled_at is null
        union all
        select w.execution_id, w.attempt, o.outcome, (o.outcome ->> 'event')::uuid from outside_wait w
        join early o on o.tenant = w.tenant and o.name = w.name
        where w.execution_id = any (p_ids) and w.outcome is null
        order by 1
    loop
        v_messages := v_messages || (settle_outside(r.execution_id, r.attempt, (r.outcome -> 'result')::text,
            (r.outcome -> 'error')::text, r.outcome ->> 'reason', (r.outcome ->> 'delay')::double precision,
            'an outcome that came before')).messages;
        insert into effect (parent, id, kind) select r.event, r.execution_id, 'execution' where r.event is not null
        on conflict do nothing;
    end loop;
    return v_messages;
end $$;
