-- Submits of clients, grouped: one durable commit for all that were pending. Returns what it staged, and as `stale` the
-- definitions that are not current any more, as `existing` pairs of (id given, id that its idempotency key already has),
-- as `conflict` the ids whose key was used for something else. Nothing at all is stored when there are stale ones.
-- planner: indexes_planned_once
create or replace function submit_executions(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_priorities smallint[], p_not_before timestamptz[], p_expires timestamptz[], p_tenants text[], p_keys text[],
    p_digests text[]
) returns setof staged
language plpgsql
as $$
declare
    v_lost uuid[];
    r record;
begin
    if exists (select from (select distinct d from unnest(p_definitions) d) x
               where not exists (select from catalog c join definition f on (f.kind, f.ref) = (c.kind, c.ref)
                                 where f.id = x.d and c.definition_id = x.d and c.enabled)) then
        return query select null::bigint, 'stale', '{}'::uuid[];
        return;
    end if;

    if p_keys is not null then
        -- Sorted by key: two groups with the same keys must not wait for each other crosswise.
        insert into idempotency (tenant, key, execution_id, digest)
        select d.tenant, d.key, d.id, d.digest
        from unnest(p_ids, p_tenants, p_keys, p_digests) as d (id, tenant, key, digest)
        where d.key is not null order by d.tenant, d.key, d.id
        on conflict do nothing;
        -- A later statement, so that it sees the winners that the insert waited for.
        for r in
            select d.id, i.execution_id, i.digest = d.digest as same
            from unnest(p_ids, p_tenants, p_keys, p_digests) as d (id, tenant, key, digest)
            join idempotency i on i.tenant = d.tenant and i.key = d.key
            where d.key is not null and i.execution_id <> d.id
        loop
            v_lost := v_lost || r.id;
            return query select null::bigint, case when r.same then 'existing' else 'conflict' end,
                array[r.id, r.execution_id];
        end loop;
        if v_lost is not null then
            select array_agg(id), array_agg(namespace_id), array_agg(definition_id), array_agg(params),
                array_agg(options), array_agg(origin), array_agg(priority), array_agg(not_before), array_agg(expires)
            into p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before, p_expires
            from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
                p_expires)
                as d (id, namespace_id, definition_id, params, options, origin, priority, not_before, expires)
            where d.id <> all (v_lost);
            if p_ids is null then
                return;
            end if;
        end if;
    end if;

    if p_expires is not null then
        insert into timer (due_at, kind, execution_id)
        select d.expires, 'expire', d.id from unnest(p_ids, p_expires) as d (id, expires)
        where d.expires is not null on conflict do nothing;
    end if;
    return query select * from request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins,
        p_priorities, p_not_before, null, null, null, false);
end $$;
