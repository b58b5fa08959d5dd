-- Open the breaker of a key, and delete the attempts that it has counted. A first wake row makes an executor take back executions
-- that were admitted and not claimed (return_blocked). A second one starts a probe at `p_probe_at`. If that is null, no probe
-- starts, and the breaker stays open until it is closed by hand. The caller holds the lock of the key.
create or replace function open_breaker(
    p_limit integer, p_group text, p_probe_at timestamptz, p_failed integer, p_attempts integer, p_by text, p_reason text
) returns void
language plpgsql
as $$
begin
    insert into breaker as b (limit_id, group_value, probe_at, failed, attempts, by, reason)
    values (p_limit, p_group, p_probe_at, p_failed, p_attempts, p_by, p_reason)
    on conflict (limit_id, group_value) do update set opened_at = clock_timestamp(), probe_at = excluded.probe_at, probes = 0,
        failed = excluded.failed, attempts = excluded.attempts, releasing_since = null, allowed = 1, passed = 0,
        by = excluded.by, reason = excluded.reason;
    delete from breaker_attempt where limit_id = p_limit and group_value = p_group;
    insert into wake (limit_id, group_value, at)
    select p_limit, p_group, x.at from (values (clock_timestamp()), (p_probe_at)) x (at) where x.at is not null;
end $$;
