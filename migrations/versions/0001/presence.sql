-- Whether no live worker serves this route and has this action. Only for those under limits: others may wait on their
-- route, where they stand before nobody.
create function is_away(p_limits integer[], p_queue text, p_action text) returns boolean
language plpgsql stable
as $$
begin
    return p_limits <> '{}' and p_queue like 'work.%' and not exists (
        select from process p
        where p.kind = 'worker' and p.state = 'active' and substr(p_queue, 6) = any (p.routes)
            and p_action = any (p.actions));
end $$;

-- Notes of every namespace since when it is away. Who waits in one that is lets others pass; when a worker comes, they
-- are woken. Called when workers come and go, and now and then.
create function notice_workers() returns void
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(7, -2);
    with changed as (
        update namespace set away_since = case when away_since is null then clock_timestamp() end
        where is_away(limits, queue, action) = (away_since is null)
        returning id, away_since
    )
    insert into wake (key) select 'worker:' || id from changed where away_since is null;
end $$;

create function process_changed() returns trigger
language plpgsql
as $$
begin
    perform notice_workers();
    return null;
end $$;

create trigger process_changed after insert or delete or update of state on process
for each statement execute function process_changed();

-- Gives back the slots of executions that were admitted and then lost all workers that could claim them, p_grace ago.
-- They go back to their place in line.
create function return_unclaimed(p_grace interval, p_limit integer) returns setof staged
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
declare
    v_ids uuid[];
begin
    if not exists (select from namespace where away_since < clock_timestamp() - p_grace) then
        return;
    end if;
    with found as (
        select e.id from execution e
        join namespace n on n.id = e.namespace_id and n.away_since < clock_timestamp() - p_grace
        where e.status = 'scheduled' and e.id in (select execution_id from slot)
        order by e.id limit p_limit for no key update of e skip locked
    ), moved as (
        update execution e set status = 'requested', reason = 'no live worker serves it'
        from found f where e.id = f.id
        returning e.id
    )
    select array_agg(id) into v_ids from moved;
    if v_ids is not null then
        return query select * from leave_limits(v_ids);
        return query select * from stage('execution.requested', v_ids, 50);
    end if;
end $$;
