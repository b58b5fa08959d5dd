-- Record which processes have lost the advisory lock of their session, and since when. Return the locks that are held, and in
-- `witness` the start of the oldest living session. If a process held its lock after that instant and does not hold it now, it
-- has ended or was cut off. Before that instant, the server itself may have lost all locks. Locks in shared mode do not count: a
-- submit that tests whether a lock is free holds it so until it commits.
create or replace function note_locks(out held bigint[], out witness timestamptz)
language plpgsql
as $$
begin
    held := array(
        select (l.classid::bigint << 32) | l.objid::bigint from pg_locks l
        where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.mode = 'ExclusiveLock'
            and l.database = (select d.oid from pg_database d where d.datname = current_database()));
    -- A heartbeat may have locked a row just now. A later call handles that row.
    update process set unlocked_at = case when unlocked_at is null then clock_timestamp() end
    where id in (
        select p.id from process p
        where p.state <> 'dead' and (p.lock_key = any (held)) = (p.unlocked_at is not null)
        order by p.id for update skip locked);
    witness := least(
        (select backend_start from pg_stat_get_activity(pg_backend_pid())),
        (select min(locked_at) from process where lock_key = any (held) and isfinite(locked_at)));
end $$;
