-- Stage ids in envelopes of at most `p_size`, in their order. Stage nothing if `p_ids` is null. The language is PL/pgSQL, since a
-- function in plain SQL would be planned at each call.
create or replace function stage(p_queue text, p_ids uuid[], p_size integer) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
begin
    with staged as (
        insert into outbox (queue, ids)
        select p_queue, p_ids[i:i + p_size - 1] from generate_series(1, cardinality(p_ids), p_size) i
        returning id, queue, ids
    )
    select coalesce(array_agg((id, queue, ids)::message), '{}') into v_messages from staged;
    return v_messages;
end $$;
