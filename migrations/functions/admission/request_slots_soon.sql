-- Ask, as request_slots, for executions that this transaction has created, but wait for the locks of keys for a moment only: null,
-- and nothing is done, if somebody has them for longer (he may be stuck). Whoever creates executions has nothing that anybody waits
-- for who has such a lock.
create or replace function request_slots_soon(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
begin
    perform set_config('lock_timeout', '50ms', true);
    v_messages := request_slots(p_ids);
    perform set_config('lock_timeout', '0', true);
    return v_messages;
exception when lock_not_available then
    return null;
end $$;
