-- requested -> queued for those of p_wanted that need one of these keys, or are of a namespace of which some stand before
-- `worker:<namespace>` or are about to be sorted anew; they go over to p_behind.
-- planner: hashed
create or replace function send_to_line(inout p_wanted wanted[], inout p_behind wanted[], p_closed text[])
language plpgsql
as $$
declare
    v_closed wanted[];
begin
    if p_closed = '{}' then
        return;
    end if;
    select array_agg(w) filter (where x.id is null), array_agg(w) filter (where x.id is not null) into p_wanted, v_closed
    from unnest(p_wanted) w left join (
        select distinct y.id
        from (select w.id, unnest(w.keys || ('worker:' || w.namespace_id)) as k from unnest(p_wanted) w) y
        join unnest(p_closed) c on c = y.k
    ) x on x.id = w.id;
    perform queue_rows(v_closed);
    p_behind := p_behind || in_line(v_closed);
end $$;
