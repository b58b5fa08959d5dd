-- The turn of the next one of a group: after the group's last, or with the round that is on.
-- planner: turns
create or replace function next_turn(p_fair text, p_group text, p_rank smallint) returns bigint
language plpgsql stable
as $$
begin
    return greatest(
        coalesce((select max(o.turn) + 1 from waiter o where o.fair_group = p_group and o.rank = p_rank), 0),
        coalesce((select min(o.turn) from lane l
                  cross join lateral (select turn from waiter x where x.lane = l.id and x.rank = p_rank
                                      order by x.turn limit 1) o
                  where l.fair = p_fair), 0));
end $$;
