-- Store the pending submits of clients, in one durable commit. `stale` is true, and nothing is stored, if some of the definitions
-- are no longer current. `existing` has submits with an idempotency key that belongs to an execution, and starts with a debounce
-- time that joined an execution (join_starts). `conflicts` has submits with a key that was used for another request, and starts
-- that do not fit their burst. Neither are stored.
-- With `p_alone`, this call of the function is the whole transaction. Then it also admits or queues executions under limits, so
-- the executions of a client that starts one after another are queued in that order. If a client's role submits, the origin of
-- the executions has that role.
-- planner: indexes_planned_once
create or replace function submit_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_priorities smallint[], p_not_before timestamptz[], p_expires timestamptz[], p_tenants text[], p_keys text[],
    p_digests text[], p_alone boolean,
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql security definer
as $$
declare
    v_lost uuid[] := '{}';
    v_role constant jsonb := submitting_role();
    v_bursts record;
begin
    -- The session may have set `penstock.moves`. The triggers would believe it, since this function has the owner's rights.
    perform set_config('penstock.moves', '', true);
    perform check_ids(p_ids);
    messages := '{}';
    existing := '{}';
    conflicts := '{}';
    stale := exists (
        select from (select distinct d from unnest(p_definitions) d) x
        where not exists (select from catalog c join definition f on (f.kind, f.ref) = (c.kind, c.ref)
                          where f.id = x.d and c.definition_id = x.d and c.enabled));
    if stale then
        return;
    end if;

    if p_keys is not null then
        -- The rows are sorted by key, so two calls with the same keys do not deadlock.
        insert into idempotency (tenant, key, execution_id, digest)
        select d.tenant, d.key, d.id, d.digest
        from unnest(p_ids, p_tenants, p_keys, p_digests) as d (id, tenant, key, digest)
        where d.key is not null order by d.tenant, d.key, d.id
        on conflict do nothing;
        -- This is a later statement, so it sees rows of transactions that the insert has waited for.
        select coalesce(array_agg((d.id, i.execution_id)::replaced_id) filter (where i.digest = d.digest), '{}'),
            coalesce(array_agg((d.id, i.execution_id)::replaced_id) filter (where i.digest is distinct from d.digest), '{}')
        into existing, conflicts
        from unnest(p_ids, p_tenants, p_keys, p_digests) as d (id, tenant, key, digest)
        join idempotency i on i.tenant = d.tenant and i.key = d.key
        where d.key is not null and i.execution_id <> d.id;
        v_lost := array(select x.given from unnest(existing || conflicts) x);
        if v_lost <> '{}' then
            select array_agg(id), array_agg(namespace_id), array_agg(definition_id), array_agg(params),
                array_agg(options), array_agg(origin), array_agg(priority), array_agg(not_before), array_agg(expires)
            into p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before, p_expires
            from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
                p_expires)
                as d (id, namespace_id, definition_id, params, options, origin, priority, not_before, expires)
            where d.id <> all (v_lost);
        end if;
    end if;

    if v_role is not null then
        select array_agg((coalesce(o.origin::jsonb, '{}') || v_role)::text order by o.place) into p_origins
        from unnest(p_ids, p_origins) with ordinality as o (id, origin, place);
    end if;
    if exists (select from unnest(p_options) o where o like '%"debounce"%' and o::jsonb ? 'debounce') then
        select * into v_bursts from join_starts(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities);
        if p_keys is not null then
            update idempotency i set execution_id = j.kept from unnest(v_bursts.joined) j
            where i.execution_id = j.given and (i.tenant, i.key) in (select * from unnest(p_tenants, p_keys));
            delete from idempotency i using unnest(v_bursts.conflicts) c
            where i.execution_id = c.given and (i.tenant, i.key) in (select * from unnest(p_tenants, p_keys));
            -- A start of this call may have the same key as an earlier start of this call that has joined a burst.
            existing := array(select (x.given, coalesce(j.kept, x.kept))::replaced_id
                from unnest(existing) x left join unnest(v_bursts.joined) j on j.given = x.kept);
        end if;
        existing := existing || v_bursts.joined;
        conflicts := conflicts || v_bursts.conflicts;
        select array_agg(id), array_agg(namespace_id), array_agg(definition_id), array_agg(params),
            array_agg(options), array_agg(origin), array_agg(priority), array_agg(not_before), array_agg(expires)
        into p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before, p_expires
        from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before, p_expires)
            as d (id, namespace_id, definition_id, params, options, origin, priority, not_before, expires)
        where d.options is null or not d.options::jsonb ? 'debounce';
        messages := v_bursts.messages;
        if p_ids is null then
            return;
        end if;
    end if;
    messages := messages || case when p_expires is null
        then request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
            null, null, null, false, p_alone)
        else request_expiring(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
            p_expires, false, p_alone) end;
end $$;
