-- Release held executions, by priority and age. Release at most `p_limit` that no hold covers any more. Of each hold that is
-- being released, release as many as its rate permits. If several such holds cover an execution, it counts in the rate of each.
-- While no executor runs, nothing is released. Afterwards, a hold makes up for at most 2 s of its rate. `released` is the number
-- of released executions. `over` is true if a hold has nothing left to release, or if its time has ended.
-- planner: lookups
create or replace function release_held(p_limit integer, out messages message[], out released integer, out over boolean)
language plpgsql
as $$
declare
    v_catch_up constant double precision := 2;
    v_ids uuid[];
    v_holds hold[] := '{}';
    v_rooms integer[] := '{}';
    v_taken integer[] := '{}';
    v_due bigint;
    v_most bigint;
    v_hold hold;
    v_index integer;
    r record;
begin
    messages := '{}';
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

    for v_hold in
        select * from hold where releasing_since is not null order by kind, name for update skip locked
    loop
        v_due := 1 - v_hold.released + floor(extract(epoch from clock_timestamp() - v_hold.releasing_since)
            * v_hold.rate_count / v_hold.rate_seconds);
        v_most := 1 + floor(v_catch_up * v_hold.rate_count / v_hold.rate_seconds);
        if v_due > v_most then
            update hold h
            set releasing_since = h.releasing_since + make_interval(secs => (v_due - v_most) * h.rate_seconds / h.rate_count)
            where h.kind = v_hold.kind and h.name = v_hold.name;
        end if;
        v_holds := array_append(v_holds, v_hold);
        v_rooms := v_rooms || least(v_due, v_most, p_limit)::integer;
        v_taken := v_taken || 0;
    end loop;
    v_ids := '{}';
    for r in
        select x.execution_id, n.covering from (
            -- A hold that is not in `v_holds` is locked by another replica, which releases its executions.
            select n.id, array(select i from generate_subscripts(v_holds, 1) i
                               where is_covered((v_holds[i]).kind, (v_holds[i]).name, n)) as covering
            from namespace n
            where n.hold = 'releasing' and not exists (
                select from hold h where is_covered(h.kind, h.name, n)
                    and not exists (select from unnest(v_holds) o where o.kind = h.kind and o.name = h.name))
            ) n
        cross join lateral (
            select h.execution_id, h.rank, h.ready_at from held_execution h where h.namespace_id = n.id
            order by h.rank, h.ready_at, h.execution_id limit greatest((select min(v_rooms[i]) from unnest(n.covering) i), 0)) x
        where n.covering <> '{}'
        order by x.rank, x.ready_at, x.execution_id
    loop
        continue when exists (select from unnest(r.covering) i where v_taken[i] >= v_rooms[i]);
        v_ids := v_ids || r.execution_id;
        foreach v_index in array r.covering loop
            v_taken[v_index] := v_taken[v_index] + 1;
        end loop;
    end loop;
    if v_ids <> '{}' then
        messages := messages || let_go(v_ids, false);
        released := released + cardinality(v_ids);
        update hold h set released = h.released + x.taken
        from (select i, (v_holds[i]).kind, (v_holds[i]).name, v_taken[i] as taken from generate_subscripts(v_holds, 1) i) x
        where h.kind = x.kind and h.name = x.name and x.taken > 0;
    end if;
    over := exists (select from hold where until <= clock_timestamp()) or exists (
        select from unnest(v_holds) h
        where not exists (
            select from held_execution x join namespace n on n.id = x.namespace_id where is_covered(h.kind, h.name, n)));
end $$;
