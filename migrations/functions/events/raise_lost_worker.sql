-- Raise `penstock.worker.lost` for each tenant of the executions that were taken back from a worker. The key of the event is the
-- id of the worker, which is never used again. So claims of this worker that turn up later raise no second event.
-- planner: lookups
create or replace function raise_lost_worker(p_worker uuid, p_name text, p_reason text, p_moved uuid[]) returns message[]
language plpgsql
as $$
declare
    r record;
begin
    if p_moved = '{}' or not is_asked('penstock.worker.lost') then
        return '{}';
    end if;
    select array_agg(x.tenant) as tenants, array_agg(x.cause) as causes, array_agg(p_worker::text) as keys,
        array_agg(jsonb_build_object('version', 1, 'worker', p_worker, 'name', p_name, 'reason', p_reason,
            'routes', coalesce(p.routes, '{}'), 'labels', coalesce(p.labels, '{}'), 'tenant', x.tenant, 'count', cardinality(x.ids),
            'executions', x.ids[1:100], 'lost_at', instant_text(clock_timestamp()), 'path', '/workers')) as payloads
    into r
    from (
        select split_part(n.name, '::', 1) as tenant, array_agg(e.id order by e.id) as ids,
            -- An execution that descends from an earlier event of this trigger comes first, as the cause. It may be what ends the
            -- workers.
            (array_agg(e.id order by 'penstock.worker.lost' = any (coalesce(s.raised, '{}')) desc, e.id))[1] as cause
        from execution e join namespace n on n.id = e.namespace_id left join chain_step s on s.id = root_of(e.id)
        where e.id = any (p_moved) group by 1
    ) x left join process p on p.id = p_worker;
    return raise_events('penstock.worker.lost', r.tenants, r.payloads, r.causes, r.keys);
end $$;
