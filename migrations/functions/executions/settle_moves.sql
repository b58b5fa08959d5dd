-- Settle executions that were moved, whatever moved them. Close executions that ended (`p_ended`), and schedule those that are
-- requested again (`p_again`). Executions under limits (`p_held`) release their slots or leave their lanes, and the next waiters
-- are promoted (I5: no lost wake-up). If such an execution is requested again and due, it joins its lane before that promotion,
-- so no younger one overtakes it (I4: order).
-- Limits come last, all in one call, since rows are locked before keys, and all keys in one order. docs/admission.md explains
-- lanes and promotions.
-- planner: lookups
create or replace function settle_moves(p_ended ended[], p_again uuid[], p_held held[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_line candidate[];
begin
    if p_ended is not null then
        v_messages := close_executions(p_ended);
    end if;
    if p_again is not null then
        if p_held is not null then
            perform lock_placement();
            v_line := array(
                select c from find_candidates(p_again) c join execution e on e.id = c.id
                where c.keys is not null and e.status = 'requested'
                    and not exists (select from namespace n where n.id = c.namespace_id and n.hold is not null)
                    and (e.not_before is null or e.not_before <= clock_timestamp())
                    and not exists (select from paused_workflow p where p.execution_id = e.parent));
        end if;
        v_messages := v_messages || request_again(array(
            select unnest(p_again) except select c.id from unnest(v_line) c));
    end if;
    if p_held is not null then
        v_messages := v_messages || release(p_held, v_line);
    end if;
    return v_messages;
end $$;
