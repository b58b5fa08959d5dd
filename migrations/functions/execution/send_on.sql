-- What has started goes on its route; what waits begins to.
create or replace function send_on(p_queue text, p_ids uuid[], p_size integer) returns setof staged
language plpgsql
as $$
begin
    if p_queue = 'waiting' then
        return query select * from begin_waits(p_ids);
    else
        return query select * from stage(p_queue, p_ids, p_size);
    end if;
end $$;
