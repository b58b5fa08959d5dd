-- Take all attempts from one process that is gone, and mark it dead. Return its name, the reason, the time since its last
-- heartbeat, and the attempts that were taken back (`moved`). Raise `penstock.worker.lost` for these. A transaction handles one
-- process, since rows are locked before keys. If no process is gone, handle the claims of processes that left earlier
-- (reap_claims). A process is gone in three cases:
-- - It has left with attempts in hand: its heartbeat is -infinity.
-- - It has ended: its lock has been free for `p_grace`, although the server has kept running since the process held it
--   (note_locks). The lock also counts as free if it was disowned (`locked_at` is -infinity), because the kernel had closed all
--   users of the process's embedded server.
-- - It is frozen or cut off: its last heartbeat is older than `p_stale`. After a silence of all processes, `p_stale` counts from
--   the end of the silence. A worker that calls a gateway has its own time (`patience`) instead of `p_stale`, since it has no
--   lock.
create or replace function reap_process(p_stale interval, p_silence interval, p_grace interval)
returns table (worker uuid, name text, reason text, age interval, moved uuid[], messages message[])
language plpgsql
as $$
#variable_conflict use_column
declare
    l record;
    r record;
    v_claims uuid[];
    v_held uuid[];
    v_resumed timestamptz;
begin
    select * into l from note_locks();
    perform note_silence(p_silence);
    select resumed_at into v_resumed from cluster;
    select p.id, p.name, p.holding, case x.why
            when 'left' then 'left with work in hand'
            when 'ended' then 'was lost (its session ended)'
            else format('was lost (no heartbeat for %s s)', round(extract(epoch from x.age))) end as reason, x.age
    into r
    from process p cross join lateral (
        select case when p.beat_at = '-infinity' then 'left'
                    when p.lock_key is not null and p.lock_key <> all (l.held)
                        and (p.beat_at > l.witness or p.locked_at = '-infinity')
                        and p.unlocked_at < clock_timestamp() - p_grace then 'ended'
                    when p.beat_at < clock_timestamp() - coalesce(p.patience, p_stale)
                        and v_resumed < clock_timestamp() - coalesce(p.patience, p_stale) then 'silent'
               end as why,
            case when isfinite(p.beat_at) then clock_timestamp() - p.beat_at else interval '0' end as age) x
    where p.state <> 'dead' and x.why is not null
    order by p.beat_at limit 1 for update of p skip locked;
    if not found then
        return query select * from reap_claims(p_stale);
        return;
    end if;

    update process set state = 'dead', holding = '{}', missing = '{}' where id = r.id;
    -- This waits for submits that are taking a permit of the process. The next statement sees their claims.
    delete from permit where worker = r.id;
    -- If the process commits a claim after this query, the claim stays. reap_claims takes it back.
    v_claims := array(select c.id from claim c where c.worker = r.id);
    v_held := array(
        select x from claim c, unnest(c.executions) x where c.id = any (v_claims) union select unnest(r.holding));
    -- Another transaction may be requesting the end of one of these executions. This one waits for it, and then the execution
    -- ends as requested.
    perform from execution where id = any (v_held) order by id for no key update;
    return query
    select r.id, r.name, r.reason, r.age, s.moved,
        s.messages || return_leases(r.id) || raise_lost_worker(r.id, r.name, r.reason, s.moved)
    from recover_executions(r.id, v_held, format('worker %s %s', r.name, r.reason)) s;
    delete from claim where id = any (v_claims);
end $$;
