-- Have place_ready leave at most `p_slots` executions at a time on one of `p_queues` to the worker that runs this transaction. It
-- claims them at the end, for the slots that it frees (claim_staged). The settings hold until the transaction ends.
create or replace function claim_own_next(p_queues text[], p_slots integer) returns void
language plpgsql
as $$
begin
    perform set_config('penstock.own_queues', p_queues::text, true), set_config('penstock.own_slots', p_slots::text, true);
end $$;
