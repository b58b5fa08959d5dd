-- Takes everything away from processes whose last heartbeat is older than p_stale, a few at a time: for each its name, how
-- old its heartbeat is, and the attempts that were taken back (`moved`). Does nothing until p_stale after a silence of all
-- processes, since then healthy ones look stale too.
create or replace function sweep(p_stale interval, p_limit integer)
returns table (worker uuid, name text, age interval, moved uuid[], messages message[])
language plpgsql
as $$
#variable_conflict use_column
declare
    r record;
    v_claims uuid[];
begin
    if exists (select from cluster where resumed_at > clock_timestamp() - p_stale) then
        return;
    end if;
    for r in
        -- A worker that left with work in hand has beaten at -infinity, from which no age can be told.
        select p.id, p.name, p.holding, isfinite(p.beat_at) as silent,
            case when isfinite(p.beat_at) then clock_timestamp() - p.beat_at else interval '0' end as age
        from process p
        where p.state <> 'dead' and p.beat_at < clock_timestamp() - p_stale
        order by p.beat_at limit p_limit for update skip locked
    loop
        update process set state = 'dead', holding = '{}', missing = '{}' where id = r.id;
        -- What it still claims after this look stays, as a claim of nobody.
        v_claims := array(select c.id from claim c where c.worker = r.id);
        return query
        select r.id, r.name, r.age, s.moved, s.messages
        from recover_executions(r.id,
            array(select x from claim c, unnest(c.executions) x where c.id = any (v_claims) union select unnest(r.holding)),
            case when r.silent then format('worker %s was lost (no heartbeat for %s s)', r.name, round(extract(epoch from r.age)))
                else format('worker %s left with work in hand', r.name) end) s;
        delete from claim where id = any (v_claims);
    end loop;

    -- Claims of nobody: their commit came after their worker had left, or was taken for dead.
    for r in
        select c.worker as id, clock_timestamp() - min(c.claimed_at) as age, array_agg(distinct x) as held,
            array_agg(distinct c.id) as claims
        from claim c cross join unnest(c.executions) x
        where not exists (select from process p where p.id = c.worker and p.state <> 'dead')
        group by c.worker having max(c.claimed_at) < clock_timestamp() - p_stale limit p_limit
    loop
        -- Rows are locked before keys. Where another replica was faster, this one waits here, and then finds that the
        -- executions are not that worker's any more.
        perform from execution where id = any (r.held) order by id for no key update;
        return query
        select r.id, 'that had left', r.age, s.moved, s.messages
        from recover_executions(r.id, r.held, format('worker %s had left', r.id)) s;
        delete from claim where id = any (r.claims);
    end loop;
end $$;
