-- Return the turn of the next execution of a group at a key with a fair limit. The result is the turn after the group's last one,
-- or the current round if that is later. Only waiters of the rank `p_rank` count.
-- planner: turns
create or replace function next_turn(p_limit integer, p_key text, p_group text, p_rank smallint) returns bigint
language plpgsql stable
as $$
begin
    return greatest(
        coalesce((select max(w.turn) + 1 from waiter w
                  where w.fair_limit = p_limit and w.fair_group = p_group and w.rank = p_rank), 0),
        coalesce((select min(w.turn) from waiter w
                  where w.fair_limit = p_limit and w.fair_key = p_key and w.rank = p_rank), 0));
end $$;
