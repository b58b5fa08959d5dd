-- Start requested executions that are due and that no limit covers: requested -> scheduled, running or waiting (start_status).
-- Return also the number of started executions. An execution that another delivery has started meanwhile, or that was cancelled,
-- is left out, since its status has changed.
create or replace function start_executions(p_ids uuid[], out messages message[], out started integer)
language plpgsql
as $$
declare
    v_kind text;
    v_queue text;
    v_size integer;
    v_moved uuid[];
    v_prior boolean;
begin
    messages := '{}';
    started := 0;
    for v_kind, v_queue, v_size, v_moved, v_prior in
        with moved as (
            update execution e set status = start_status(n.kind), keys = null
            from namespace n
            where e.id = any (p_ids) and e.status = 'requested' and n.id = e.namespace_id and n.limits = '{}'
                and (e.not_before is null or e.not_before <= clock_timestamp())
            returning e.id, e.ready_at, e.priority, n.kind, n.queue, n.envelope
        )
        select kind, queue, envelope, array_agg(id order by ready_at, id), bool_or(priority <> 0)
        from moved group by kind, queue, envelope
    loop
        started := started + cardinality(v_moved);
        messages := messages || place_ready(v_kind, v_queue, v_moved, v_size, v_prior, false, true);
    end loop;
end $$;
