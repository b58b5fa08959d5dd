-- Return the executions of the trees of these roots, each with its root. A tree is returned only if each of its executions has
-- ended, and each end was delivered to its followers. The other roots are listed in `finished` again, for later.
-- planner: archive
create or replace function whole_trees(p_roots uuid[], out ids uuid[], out roots uuid[])
language plpgsql
as $$
begin
    with recursive tree as (
        select e.id, e.id as root, e.finished_at from execution e where e.id = any (p_roots)
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
    select array_agg(id), array_agg(root) into ids, roots from tree where root in (select root from whole);
end $$;
