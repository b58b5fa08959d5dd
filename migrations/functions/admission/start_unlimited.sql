-- -> scheduled for executions that have no limits (any more).
create or replace function start_unlimited(p_ids uuid[], p_from text) returns setof staged
language plpgsql
as $$
declare
    v_queue text;
    v_size integer;
    v_moved uuid[];
begin
    for v_queue, v_size, v_moved in
        with moved as (
            update execution e
            set status = case when n.queue like 'work.%' then 'scheduled' when n.queue = 'waiting' then 'waiting'
                         else 'running' end, keys = null
            from namespace n
            where e.id = any (p_ids) and e.status = p_from and n.id = e.namespace_id
            returning e.id, e.ready_at, n.queue, n.envelope
        )
        select queue, envelope, array_agg(id order by ready_at, id) from moved group by queue, envelope
    loop
        insert into live (execution_id) select unnest(v_moved) where p_from = 'queued';
        return query select * from send_on(v_queue, v_moved, v_size);
    end loop;
end $$;
