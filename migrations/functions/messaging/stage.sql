-- Stages envelopes of at most p_size ids, in the order given. Not in plain SQL, which would be planned at each call.
create or replace function stage(p_queue text, p_ids uuid[], p_size integer) returns setof staged
language plpgsql
as $$
begin
    return query
        insert into outbox (queue, ids)
        select p_queue, p_ids[i:i + p_size - 1] from generate_series(1, cardinality(p_ids), p_size) i
        returning id, queue, ids;
end $$;
