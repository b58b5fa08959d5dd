-- Release held executions: at most `p_limit` that no hold covers any more, and of each hold that is being released as many
-- as its rate permits. They are released in the order of priority and age. A hold without held executions is then deleted.
-- `released` is the number of released executions. `over` says that a hold was deleted, or that its time was up.
-- planner: lookups
create or replace function release_held(p_limit integer, out messages message[], out released integer, out over boolean)
language plpgsql
as $$
declare
    v_ids uuid[];
    v_count integer;
    r record;
begin
    messages := '{}';
    over := false;
    v_ids := array(
        select x.execution_id from namespace n cross join lateral (
            select h.execution_id, h.rank, h.ready_at from held_execution h where h.namespace_id = n.id
            order by h.rank, h.ready_at, h.execution_id limit p_limit) x
        where n.hold is null
        order by x.rank, x.ready_at, x.execution_id limit p_limit);
    released := cardinality(v_ids);
    if v_ids <> '{}' then
        messages := let_go(v_ids, true);
    end if;
    for r in
        select * from hold where releasing_since is not null order by kind, name for update skip locked
    loop
        v_count := least(p_limit, 1 - r.released
            + floor(extract(epoch from clock_timestamp() - r.releasing_since) * r.rate_count / r.rate_seconds));
        continue when v_count <= 0;
        v_ids := array(
            select x.execution_id from namespace n cross join lateral (
                select h.execution_id, h.rank, h.ready_at from held_execution h where h.namespace_id = n.id
                order by h.rank, h.ready_at, h.execution_id limit v_count) x
            where n.hold = 'releasing' and is_covered(r.kind, r.name, n)
            order by x.rank, x.ready_at, x.execution_id limit v_count);
        if v_ids = '{}' then
            over := true;
        else
            messages := messages || let_go(v_ids, false);
            released := released + cardinality(v_ids);
            update hold h set released = h.released + cardinality(v_ids) where h.kind = r.kind and h.name = r.name;
        end if;
    end loop;
    over := over or exists (select from hold where until <= clock_timestamp());
end $$;
