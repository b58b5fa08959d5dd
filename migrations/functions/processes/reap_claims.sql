-- Takes back the claims of a process that is gone already: their commit came after it had left, or was taken for dead. Those
-- of one process, as reap_process, once none has come for p_stale.
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
    -- Rows are locked before keys. Where another replica was faster, this one waits here, and then finds that the
    -- executions are not that worker's any more.
    perform from execution where id = any (r.held) order by id for no key update;
    return query
    select r.id, r.id::text, 'had left', r.age, s.moved, s.messages
    from recover_executions(r.id, r.held, format('worker %s had left', r.id)) s;
    delete from claim where id = any (r.claims);
end $$;
