-- Moves finished trees to the archive, a few batches of roots at a time, that were noted after p_after; only whole trees
-- of which every execution is final, and what is final stays so. Returns how many executions were moved, and the last batch
-- that was looked at (null: none). Each table is read by its ids, whatever its statistics say: they are always old.
-- planner: archive
create or replace function archive_finished(p_older interval, p_batches integer, p_after bigint default 0, out moved integer, out last bigint)
language plpgsql
as $$
declare
    v_roots uuid[];
    v_tree uuid[];
    v_of uuid[];
begin
    moved := 0;
    with gone as (
        delete from finished where id = any (array(
            select id from (
                select id, at from finished where id > p_after order by id limit p_batches for update skip locked) x
            where at < clock_timestamp() - p_older))
        returning id, ids
    )
    select array_agg(distinct x), max(id) into v_roots, last from gone, unnest(ids) x;
    if v_roots is null then
        return;
    end if;

    with recursive tree as (
        select e.id, e.id as root, e.finished_at from execution e where e.id = any (v_roots)
        union all
        select c.id, t.root, c.finished_at from tree t
        cross join lateral (select id, finished_at from execution where parent = t.id offset 0) c
    ), whole as (
        select root from tree group by root having bool_and(
            finished_at is not null and (select count(*) from untold u where u.execution_id = tree.id) = 0)
    ), late as (
        insert into finished (ids)
        select array_agg(root) from (select distinct root from tree except select root from whole) x having count(*) > 0
    )
    select array_agg(id), array_agg(root) into v_tree, v_of from tree where root in (select root from whole);
    if v_tree is null then
        return;
    end if;

    with tree as (
        select * from unnest(v_tree, v_of) as x (id, root)
    ), gone as (
        delete from execution where id = any (v_tree) returning *
    ), given as (
        delete from payload where execution_id = any (v_tree) returning *
    ), told as (
        delete from result where execution_id = any (v_tree) returning *
    ), workflows as (
        select execution_id, workflow_state(execution_id) as state from workflow where execution_id = any (v_tree)
    ), tried as (
        delete from attempt
        where execution_id = any (array(select id from gone where attempt > 1 or status <> 'completed')) returning *
    ), kept as (
        insert into archive (id, finished_at, status, action, namespace, root, parent, task, item, created_at, attempt,
            failures, recoveries, priority, definition_id, reason, params, options, origin, result, error, state, attempts)
        select g.id, g.finished_at, g.status, n.action, n.name, tree.root, g.parent, g.task, g.item, g.created_at,
            g.attempt, g.failures, g.recoveries, g.priority, g.definition_id, g.reason,
            p.params, p.options, p.origin, r.result, r.error, w.state, t.attempts
        from gone g
        join tree on tree.id = g.id
        join namespace n on n.id = g.namespace_id
        left join given p on p.execution_id = g.id
        left join told r on r.execution_id = g.id
        left join workflows w on w.execution_id = g.id
        left join (
            select execution_id, jsonb_agg(to_jsonb(t) - 'execution_id' order by attempt) as attempts
            from tried t group by execution_id
        ) t on t.execution_id = g.id
        returning 1
    )
    select count(*) into moved from kept;
end $$;
