-- Store events, and return the new ones in `stored`. An event is not stored if an event with the same message id, tenant, trigger
-- and source exists. Such an event is in `existing`, or in `conflicts` if the payloads differ. Stage `event.created`, unless the
-- caller matches the rules itself in this transaction (`p_matched`). Raise PN007 for an event of a system trigger: only
-- raise_events writes these.
create or replace function store_events(
    p_ids uuid[], p_triggers text[], p_tenants text[], p_payloads text[], p_sources text[], p_message_ids text[],
    p_digests text[], p_matched boolean,
    out messages message[], out stored uuid[], out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql security definer
as $$
declare
    v_lost uuid[] := '{}';
begin
    if exists (select from unnest(p_triggers) t where starts_with(t, 'penstock.')) then
        raise exception 'events of penstock.* are written by Penstock alone' using errcode = 'PN007';
    end if;
    perform check_ids(p_ids);
    insert into event_key (tenant, trigger, source, message_id, event_id, digest)
    select d.tenant, d.trigger, coalesce(d.source, ''), d.message_id, d.id, d.digest
    from unnest(p_ids, p_tenants, p_triggers, p_sources, p_message_ids, p_digests)
        as d (id, tenant, trigger, source, message_id, digest)
    where d.message_id is not null
    order by d.tenant, d.trigger, d.source, d.message_id, d.id
    on conflict do nothing;
    -- This is a later statement, so it sees rows of transactions that the insert has waited for.
    select coalesce(array_agg((d.id, k.event_id)::replaced_id) filter (where k.digest = d.digest), '{}'),
        coalesce(array_agg((d.id, k.event_id)::replaced_id) filter (where k.digest is distinct from d.digest), '{}')
    into existing, conflicts
    from unnest(p_ids, p_tenants, p_triggers, p_sources, p_message_ids, p_digests)
        as d (id, tenant, trigger, source, message_id, digest)
    join event_key k on (k.tenant, k.trigger, k.source, k.message_id)
        = (d.tenant, d.trigger, coalesce(d.source, ''), d.message_id)
    where d.message_id is not null and k.event_id <> d.id;
    v_lost := array(select x.given from unnest(existing || conflicts) x);

    with made as (
        insert into event (id, trigger, tenant, payload, source)
        select d.id, d.trigger, d.tenant, d.payload::jsonb, d.source
        from unnest(p_ids, p_triggers, p_tenants, p_payloads, p_sources) as d (id, trigger, tenant, payload, source)
        where d.id <> all (v_lost)
        on conflict do nothing
        returning id
    )
    select coalesce(array_agg(id), '{}') into stored from made;
    messages := '{}';
    if stored <> '{}' and not p_matched then
        insert into unmatched (event_id) select unnest(stored);
        messages := stage('event.created', stored, 50);
    end if;
end $$;
