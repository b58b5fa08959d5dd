-- Repair invariant I10e: request executions again that wait for an answer or for something outside, and have no row of that wait.
-- Then they ask again.
create or replace function mend_silent(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    with moved as (
        update execution e set status = 'requested', since = clock_timestamp(),
            reason = case when e.ends_as is null then 'its inquiry was lost (penstock repair)' else e.reason end
        from namespace n
        where e.id = any (p_ids) and e.status = 'waiting' and n.id = e.namespace_id and n.kind = 'action'
            and not exists (select from inquiry i where i.execution_id = e.id and i.status = 'created')
            and not exists (select from outside_wait w where w.execution_id = e.id and w.settled_at is null)
        returning e.id
    )
    select array_agg(id order by id) into v_ids from moved;
    delete from inquiry where execution_id = any (v_ids);
    return settle_moves(null, v_ids, held_by(v_ids));
end $$;
