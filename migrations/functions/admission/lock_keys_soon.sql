-- Lock keys as lock_keys does, but wait at most 50 ms for each. Return false, with no key locked, if another transaction
-- holds one of them for longer. The caller's own lock_timeout holds again when the function returns.
create or replace function lock_keys_soon(p_keys limit_key[]) returns boolean
language plpgsql
set lock_timeout = '50ms'
as $$
begin
    perform lock_keys(p_keys);
    return true;
exception when lock_not_available then
    return false;
end $$;
