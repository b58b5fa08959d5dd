-- Lock keys until the transaction ends, in the order of their lock numbers, after the placement in shared mode. The caller has to
-- count the holders of a key in a later statement, which sees all that the former holder of the lock committed.
create or replace function lock_keys(p_keys limit_key[]) returns void
language plpgsql
as $$
begin
    perform lock_placement();
    perform pg_advisory_xact_lock(7, x.lock) from (select distinct key_lock(k) as lock from unnest(p_keys) k order by 1) x;
end $$;
