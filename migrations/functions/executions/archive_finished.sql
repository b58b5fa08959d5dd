-- Move finished trees to the archive, at most `p_batches` batches of roots. These are rows of `finished` after the id `p_after`
-- that are older than `p_older`. A tree is moved only if each of its executions has ended. Return the number of moved executions.
-- `last` is the last batch that was handled, or null.
-- planner: archive
create or replace function archive_finished(p_older interval, p_batches integer, p_after bigint default 0, out moved integer, out last bigint)
language plpgsql
as $$
declare
    v_roots uuid[];
    v_ids uuid[];
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
    select t.ids, t.roots into v_ids, v_of from whole_trees(v_roots) t;
    if v_ids is not null then
        moved := archive_trees(v_ids, v_of);
    end if;
end $$;
