-- Request by hand that executions end as cancelled. A second request also ends the exit task of a workflow, and the cleanup of a
-- durable function. It then also reaches the open executions inside that function, at every depth, even if the function has
-- ended. `notified` are the executions among `p_ids` for which the request counted, for themselves or inside. The other results
-- are those of request_ends, for all executions that were reached.
-- The executions inside are read first and locked before the functions around them, since the end of a child locks its row, and
-- then that of its function. Another request may commit between the reading and the locks, and a function may start a child
-- there. So the executions are read again under the locks. If there are more, the locks are released, and all begins again.
-- planner: lookups
create or replace function cancel_nested(
    p_ids uuid[], p_reason text,
    out messages message[], out canceling uuid[], out stopping uuid[], out moved uuid[], out notified uuid[]
)
language plpgsql
as $$
declare
    v_has_functions boolean;
    v_ids uuid[] := '{}';
    v_roots uuid[];
    v_depths integer[];
    v_requested record;
    r record;
begin
    messages := '{}';
    canceling := '{}';
    stopping := '{}';
    moved := '{}';
    notified := '{}';
    v_has_functions := exists (select from execution e join definition d on d.id = e.definition_id
        where e.id = any (p_ids) and d.body ? 'durable');
    while v_has_functions loop
        begin
            select coalesce(array_agg(i.id), '{}'), coalesce(array_agg(i.root), '{}'), coalesce(array_agg(i.depth), '{}')
            into v_ids, v_roots, v_depths from inside_functions(p_ids) i;
            for v_depth in reverse coalesce((select max(d) from unnest(v_depths) d), 0)..1 loop
                perform lock_runs(array(select id from unnest(v_ids, v_depths) i (id, depth) where depth = v_depth));
            end loop;
            perform lock_runs(p_ids);
            if exists (select from inside_functions(p_ids) i where i.id <> all (v_ids)) then
                raise exception 'more executions are inside' using errcode = 'PN008';
            end if;
            exit;
        exception when sqlstate 'PN008' then
            null;
        end;
    end loop;
    -- An execution is asked once, even if it is inside of several executions among `p_ids`, or is one of them itself.
    for r in
        select depth, array_agg(id order by id) as ids from (
            select id, max(depth) as depth from unnest(v_ids, v_depths) i (id, depth) group by id
            union all select id, 0 from unnest(p_ids) id where id <> all (v_ids)
        ) o group by depth order by depth desc
    loop
        select e.* into v_requested from request_ends(r.ids, 'cancelled', p_reason, true) e;
        messages := messages || v_requested.messages;
        canceling := canceling || v_requested.canceling;
        stopping := stopping || v_requested.stopping;
        moved := moved || v_requested.moved;
    end loop;
    notified := array(
        select id from unnest(p_ids) id where id = any (canceling || stopping || moved)
        union select root from unnest(v_ids, v_roots) i (id, root) where id = any (canceling || stopping || moved));
end $$;
