-- Make place_ready leave new work on one of `p_queues` to the worker that runs this transaction. At most `p_slots` executions are
-- left to the worker at a time. The worker claims them at the end, for the slots that it frees (claim_staged). The settings last
-- until the transaction ends.
create or replace function claim_own_next(p_queues text[], p_slots integer) returns void
language plpgsql
as $$
begin
    perform set_config('penstock.own_queues', p_queues::text, true), set_config('penstock.own_slots', p_slots::text, true);
end $$;
