-- Settle executions that were moved, whatever moved them. Ended ones are closed. Ones that are requested again are made ready. Those
-- under limits (p_held) release their slots, or leave their lanes, to the next waiters (I5). Limits come last, all in one call: rows are
-- locked before keys, and keys in one order.
create or replace function settle_moves(p_ended ended[], p_again uuid[], p_held held[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
begin
    if p_ended is not null then
        v_messages := close_executions(p_ended);
    end if;
    if p_again is not null then
        v_messages := v_messages || request_again(p_again);
    end if;
    if p_held is not null then
        v_messages := v_messages || release(p_held);
    end if;
    return v_messages;
end $$;
