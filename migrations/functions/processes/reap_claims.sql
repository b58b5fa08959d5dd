-- Take back the claims of a process that was already gone when it committed them: it had left, or was marked dead. Handle one
-- process, as reap_process does, once it has made no new claim for `p_stale`. Return no row if there is none.
create or replace function reap_claims(p_stale interval)
returns table (worker uuid, name text, reason text, age interval, moved uuid[], messages message[])
language plpgsql
as $$
#variable_conflict use_column
declare
    r record;
begin
    select c.worker as id, clock_timestamp() - min(c.claimed_at) as age, array_agg(distinct x) as held,
        array_agg(distinct c.id) as claims
    into r
    from claim c cross join unnest(c.executions) x
    where not exists (select from process p where p.id = c.worker and p.state <> 'dead')
    group by c.worker having max(c.claimed_at) < clock_timestamp() - p_stale limit 1;
    if not found then
        return;
    end if;
    -- Rows are locked before keys. If another replica was faster, this one waits for it. Then the worker no longer has the
    -- executions.
    perform from execution where id = any (r.held) order by id for no key update;
    return query
    select r.id, r.id::text, 'had left', r.age, s.moved,
        s.messages || raise_lost_worker(r.id, coalesce((select p.name from process p where p.id = r.id), r.id::text), 'had left', s.moved)
    from recover_executions(r.id, r.held, format('worker %s had left', r.id)) s;
    delete from claim where id = any (r.claims);
end $$;
