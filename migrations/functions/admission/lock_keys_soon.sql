-- Lock keys as lock_keys does, but wait at most 50 ms for each lock. If one of them is not free within that time, return false,
-- with no key locked. After the call, the caller's own lock_timeout applies again.
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
