-- Stores events. One whose message id was seen before (for its tenant, trigger and source) is not stored again: it is
-- returned as `existing` (id given, id that it has), or as `conflict` when its payload differs.
-- Stages `event.created` unless the caller matches the rules itself in this transaction (p_matched).
create function store_events(
    p_ids uuid[], p_triggers text[], p_tenants text[], p_payloads text[], p_sources text[], p_message_ids text[],
    p_digests text[], p_matched boolean
) returns setof staged
language plpgsql
as $$
declare
    v_lost uuid[] := '{}';
    v_new uuid[];
    r record;
begin
    insert into event_key (tenant, trigger, source, message_id, event_id, digest)
    select d.tenant, d.trigger, coalesce(d.source, ''), d.message_id, d.id, d.digest
    from unnest(p_ids, p_tenants, p_triggers, p_sources, p_message_ids, p_digests)
        as d (id, tenant, trigger, source, message_id, digest)
    where d.message_id is not null
    order by d.tenant, d.trigger, d.source, d.message_id, d.id
    on conflict do nothing;
    for r in
        select d.id, k.event_id, k.digest = d.digest as same
        from unnest(p_ids, p_tenants, p_triggers, p_sources, p_message_ids, p_digests)
            as d (id, tenant, trigger, source, message_id, digest)
        join event_key k on (k.tenant, k.trigger, k.source, k.message_id)
            = (d.tenant, d.trigger, coalesce(d.source, ''), d.message_id)
        where d.message_id is not null and k.event_id <> d.id
    loop
        v_lost := v_lost || r.id;
        return query select null::bigint, case when r.same then 'existing' else 'conflict' end, array[r.id, r.event_id];
    end loop;

    with made as (
        insert into event (id, trigger, tenant, payload, source)
        select d.id, d.trigger, d.tenant, d.payload::jsonb, d.source
        from unnest(p_ids, p_triggers, p_tenants, p_payloads, p_sources) as d (id, trigger, tenant, payload, source)
        where d.id <> all (v_lost)
        on conflict do nothing
        returning id
    )
    select array_agg(id) into v_new from made;
    if v_new is not null then
        if p_matched then
            return query select null::bigint, 'stored', v_new;
        else
            insert into unmatched (event_id) select unnest(v_new);
            return query select * from stage('event.created', v_new, 50);
        end if;
    end if;
end $$;

-- Records which rules matched which events, once for each pair (I7), and starts their executions. The execution's id
-- stands for the enforcement in messages. A match whose parameters could not be rendered is kept as failed.
create function enforce_rules(
    p_ids uuid[], p_events uuid[], p_rules text[], p_definitions integer[], p_namespaces integer[],
    p_action_definitions integer[], p_priorities smallint[], p_params text[], p_options text[], p_errors text[]
) returns setof staged
language plpgsql
as $$
declare
    v_new uuid[];
begin
    with made as (
        insert into enforcement (event_id, rule, definition_id, execution_id, status, namespace_id,
            action_definition_id, priority, params, options, error)
        select d.event_id, d.rule, d.definition_id, d.id, case when d.error is null then 'created' else 'failed' end,
            d.namespace_id, d.action_definition_id, coalesce(d.priority, 0), d.params::jsonb, d.options::jsonb, d.error
        from unnest(p_ids, p_events, p_rules, p_definitions, p_namespaces, p_action_definitions, p_priorities, p_params,
            p_options, p_errors)
            as d (id, event_id, rule, definition_id, namespace_id, action_definition_id, priority, params, options, error)
        order by d.event_id, d.rule
        on conflict do nothing
        returning execution_id, status
    )
    select array_agg(execution_id) into v_new from made where status = 'created';
    if v_new is not null then
        return query select * from execute_enforcements(v_new);
    end if;
end $$;

-- created -> executed, and the one execution of each; what is executed already is left alone.
create function execute_enforcements(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    return query
    with moved as (
        update enforcement set status = 'executed'
        where execution_id = any (p_ids) and status = 'created'
        returning *
    ), timed as (
        insert into timer (due_at, kind, execution_id)
        select clock_timestamp() + make_interval(secs => (options ->> 'expires')::double precision), 'expire', execution_id
        from moved where options ? 'expires'
    ), all_of as (
        select array_agg(execution_id) as ids, array_agg(namespace_id) as namespaces,
            array_agg(action_definition_id) as definitions, array_agg(params::text) as params,
            array_agg(options::text) as options, array_agg(priority) as priorities,
            array_agg(jsonb_build_object('event', event_id, 'rule', rule)::text) as origins
        from (select * from moved order by execution_id) m
    )
    select s.* from all_of a
    cross join lateral request_executions(a.ids, a.namespaces, a.definitions, a.params, a.options, a.origins,
        a.priorities, null, null, null, null, true) s
    where a.ids is not null;
end $$;
