-- Submit at most 20 executions of one namespace and one definition, in a transaction of their own. If there is nothing to
-- decide, one statement writes all rows, and the history instead of the trigger: no limit covers the namespace, no worker
-- lacks the action, the definition is current and has no timeouts, and no status is announced or subscribed to. All other
-- submits go to submit_executions, and nothing has been written before. An id that exists was submitted before, and its
-- answer was lost: it is left alone.
-- planner: indexes_planned_once
create or replace function submit_alike(
    p_ids uuid[], p_namespace integer, p_definition integer, p_params text[], p_origins text[], p_priority smallint,
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql security definer
as $$
declare
    v_actor constant text := current_setting('application_name');
    v_size constant integer := cardinality(p_ids);
    v_queue text;
    v_envelope smallint;
begin
    select n.queue, n.envelope into v_queue, v_envelope
    from namespace n, definition f, catalog c, cluster u
    where n.id = p_namespace and n.kind = 'action' and n.limits = '{}' and not n.lacked
        and f.id = p_definition and c.kind = f.kind and c.ref = f.ref and c.definition_id = f.id and c.enabled
        and not f.body ? 'timeouts' and u.id = 1 and u.announced = '{}' and u.subscribed = '{}';
    if not found then
        select s.messages, s.stale, s.existing, s.conflicts into messages, stale, existing, conflicts
        from submit_executions(p_ids, array_fill(p_namespace, array[v_size]), array_fill(p_definition, array[v_size]), p_params,
            null, p_origins, array_fill(p_priority, array[v_size]), null, null, null, null, null, true) s;
        return;
    end if;
    perform check_ids(p_ids);
    stale := false;
    existing := '{}';
    conflicts := '{}';
    perform set_config('penstock.moves', 'written', true);
    with written as (
        insert into execution (id, status, namespace_id, definition_id, priority)
        select d.id, 'scheduled', p_namespace, p_definition, p_priority from unnest(p_ids) d (id)
        on conflict do nothing returning id, ready_at
    ), moves as (
        insert into history (execution_id, at, old, new, attempt, actor, ready_at)
        select w.id, clock_timestamp() + m.later, m.old, m.new, 0, v_actor, case when m.old is null then w.ready_at end
        from written w, (values (interval '0', null, 'requested'), (interval '1 microsecond', 'requested', 'scheduled')) m (later, old, new)
    ), payloads as (
        insert into payload (execution_id, params, origin)
        select d.id, d.params::jsonb, d.origin::jsonb from written w join unnest(p_ids, p_params, p_origins) d (id, params, origin) on d.id = w.id
    ), open as (
        insert into live (execution_id) select id from written
    ), staged as (
        insert into outbox (queue, ids)
        select v_queue, array_agg(d.id order by d.place) from written w join unnest(p_ids) with ordinality d (id, place) on d.id = w.id
        group by (d.place - 1) / v_envelope
        returning id, queue, ids
    )
    select coalesce(array_agg((id, queue, ids)::message), '{}') into messages from staged;
    perform set_config('penstock.moves', '', true);
end $$;
