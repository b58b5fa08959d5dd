-- requested or queued -> started, for those of these executions that are due and need no slot. p_under_limits: their
-- namespaces may have limits, none of which they need a slot of (those of a workflow inside another one, or limits that
-- are gone). Otherwise executions in a namespace with limits are left alone. Returns also how many were started.
-- The guard on the status makes losers of a race simply not in it: another delivery has started them, or somebody has
-- cancelled them since they were looked at.
create or replace function start_executions(
    p_ids uuid[], p_from text, p_under_limits boolean, out messages message[], out started integer
)
language plpgsql
as $$
declare
    v_kind text;
    v_queue text;
    v_size integer;
    v_moved uuid[];
begin
    messages := '{}';
    started := 0;
    for v_kind, v_queue, v_size, v_moved in
        with moved as (
            update execution e set status = start_status(n.kind), keys = null
            from namespace n
            where e.id = any (p_ids) and e.status = p_from and n.id = e.namespace_id and (p_under_limits or n.limits = '{}')
                and (e.not_before is null or e.not_before <= clock_timestamp())
            returning e.id, e.ready_at, n.kind, n.queue, n.envelope
        )
        select kind, queue, envelope, array_agg(id order by ready_at, id) from moved group by kind, queue, envelope
    loop
        started := started + cardinality(v_moved);
        if p_from = 'queued' then
            insert into live (execution_id) select unnest(v_moved);
        end if;
        messages := messages || send_on(v_kind, v_queue, v_moved, v_size);
    end loop;
end $$;
