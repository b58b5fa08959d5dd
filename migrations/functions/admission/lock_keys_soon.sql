-- Locks keys as lock_keys does, but waits for a moment only: false, and none is locked, if somebody has one for longer.
create or replace function lock_keys_soon(p_keys limit_key[]) returns boolean
language plpgsql
as $$
begin
    perform set_config('lock_timeout', '50ms', true);
    perform lock_keys(p_keys);
    perform set_config('lock_timeout', '0', true);
    return true;
exception when lock_not_available then
    return false;
end $$;
