-- A message that was staged: one envelope. What returns it also tells the caller to publish it after the commit.
create type staged as (outbox_id bigint, queue text, ids uuid[]);

-- Stages envelopes of at most p_size ids, in the order given. Not in plain SQL, which would be planned at each call.
create function stage(p_queue text, p_ids uuid[], p_size integer) returns setof staged
language plpgsql
as $$
begin
    return query
        insert into outbox (queue, ids)
        select p_queue, p_ids[i:i + p_size - 1] from generate_series(1, cardinality(p_ids), p_size) i
        returning id, queue, ids;
end $$;

-- Tells whoever follows these executions, which have ended: their workflows, and the actions that come after them.
create function tell_ends(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    insert into untold (execution_id) select unnest(p_ids) on conflict do nothing;
    return query select * from stage('execution.completed', p_ids, 100);
end $$;
