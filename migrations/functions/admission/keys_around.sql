-- Return the keys `p_keys`, and all other keys that the first 50 lanes at the gates of `p_keys` need. A transaction that will
-- free slots locks all of these keys together, in one order. The transaction cannot wait for the lock of a key that it discovers
-- later, and would have to pass over an execution.
create or replace function keys_around(p_keys limit_key[]) returns limit_key[]
language plpgsql stable
as $$
begin
    -- The usual case: no lane at these gates needs a second key.
    if not exists (select from unnest(p_keys) g where exists (
            select from lane l
            where l.gate_limit = g.limit_id and l.gate_group = g.group_value and cardinality(l.keys) > 1)) then
        return p_keys;
    end if;
    return array(
        select k from unnest(p_keys) k
        union
        select k from unnest(p_keys) g
        cross join lateral (
            select keys from lane l where l.gate_limit = g.limit_id and l.gate_group = g.group_value
            order by l.rank, l.place, l.ready_at, l.execution_id limit 50) l
        cross join unnest(l.keys) k where cardinality(l.keys) > 1
    );
end $$;
