-- Where these lanes begin, after waiters left them from the middle of the line. An empty one goes.
create or replace function find_heads(p_lanes text[]) returns void
language plpgsql
as $$
begin
    delete from lane l where l.id = any (p_lanes) and not exists (select from waiter w where w.lane = l.id);
    update lane l
    set rank = w.rank, turn = w.turn, ready_at = w.ready_at, execution_id = w.execution_id
    from unnest(p_lanes) p (id)
    cross join lateral (
        select * from waiter w where w.lane = p.id order by w.rank, w.turn, w.ready_at, w.execution_id limit 1
    ) w
    where l.id = any (p_lanes) and l.id = p.id and l.execution_id <> w.execution_id;
end $$;
