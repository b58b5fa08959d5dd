-- Raise `penstock.breaker.opened` for each breaker that these calls have opened since `p_since`, once for each tenant of the
-- failed calls. The caller has held the locks of the keys since before `p_since`, so no other transaction has opened one of these
-- breakers.
-- planner: lookups
create or replace function raise_opened_breakers(p_calls breaker_call[], p_since timestamptz) returns message[]
language plpgsql
as $$
declare
    r record;
begin
    if not is_asked('penstock.breaker.opened') then
        return '{}';
    end if;
    select array_agg(x.tenant) as tenants, array_agg(x.cause) as causes, array_agg(jsonb_build_object(
            'version', 1, 'breaker', x.ref, 'scope', x.scope, 'group', x.group_value, 'tenant', x.tenant, 'execution', x.last, 'failed', x.failed,
            'attempts', x.attempts, 'opened_at', instant_text(x.opened_at), 'probe_at', instant_text(x.probe_at),
            'path', '/limits/' || x.ref)) as payloads
    into r
    from (
        select l.ref, l.scope, b.group_value, b.failed, b.attempts, b.opened_at, b.probe_at, split_part(n.name, '::', 1) as tenant,
            (array_agg(e.id order by e.finished_at desc nulls last, e.id desc))[1] as last,
            (array_agg(e.id order by 'penstock.breaker.opened' = any (coalesce(s.raised, '{}')) desc, e.id))[1] as cause
        from unnest(p_calls) c
        join breaker b on b.limit_id = c.limit_id and b.group_value = c.group_value and b.opened_at >= p_since and b.by is null
        join concurrency_limit l on l.id = b.limit_id
        join execution e on e.id = c.execution_id and e.attempt >= c.attempt
        join attempt t on t.execution_id = e.id and t.attempt = e.attempt and t.outcome in ('failed', 'timeout')
        join namespace n on n.id = e.namespace_id
        left join chain_step s on s.id = root_of(e.id)
        group by 1, 2, 3, 4, 5, 6, 7, 8
    ) x;
    if r.tenants is null then
        return '{}';
    end if;
    return raise_events('penstock.breaker.opened', r.tenants, r.payloads, r.causes);
end $$;
