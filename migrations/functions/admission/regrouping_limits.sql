-- Return the limits under which lanes wait for their regrouping. Such a lane may have the next execution of any key of these
-- limits, so no execution starts under them before all of these lanes are regrouped. They are the limits of the lane's namespace,
-- since the lane knows only its old keys. The keys of a budget belong to the limit of its unit.
-- Lanes are marked only under the exclusive placement. So a caller that holds the placement misses no limit. The result may have a
-- limit of which another transaction is regrouping the last lane. So a promotion that passes over a key with room leaves a wake row.
-- The query looks up the namespaces with lanes aside one after another, since each of them may have very many lanes.
-- planner: lookups
create or replace function regrouping_limits() returns integer[]
language plpgsql stable
as $$
begin
    if not exists (select from lane where gate_kind = 'regroup') then
        return '{}';
    end if;
    return array(
        with recursive aside (namespace_id) as (
            (select namespace_id from lane where gate_kind <> 'limit' order by namespace_id limit 1)
            union all
            select (select l.namespace_id from lane l where l.gate_kind <> 'limit' and l.namespace_id > a.namespace_id
                    order by l.namespace_id limit 1)
            from aside a where a.namespace_id is not null
        )
        select distinct coalesce(l.budget, l.id)
        from aside a join namespace n on n.id = a.namespace_id
        cross join unnest(n.limits) x (id) join concurrency_limit l on l.id = x.id
        where exists (select from lane o where o.namespace_id = a.namespace_id and o.gate_kind = 'regroup'));
end $$;
