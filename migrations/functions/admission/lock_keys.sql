-- Locks keys until the transaction ends. What is counted or decided for a key is read in a later statement, which sees
-- what the lock's former holder has committed. Keys share 2,048 locks, so that no batch exhausts PostgreSQL's lock table.
create or replace function lock_keys(p_keys text[]) returns void
language plpgsql
as $$
begin
    perform lock_placement();
    perform pg_advisory_xact_lock(7, x.lock) from (select distinct hashtext(k) & 2047 as lock from unnest(p_keys) k order by 1) x;
end $$;
