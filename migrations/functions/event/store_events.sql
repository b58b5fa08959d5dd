-- Stores events. One whose message id was seen before (for its tenant, trigger and source) is not stored again: it is
-- returned as `existing` (id given, id that it has), or as `conflict` when its payload differs.
-- Stages `event.created` unless the caller matches the rules itself in this transaction (p_matched).
create or replace function store_events(
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
