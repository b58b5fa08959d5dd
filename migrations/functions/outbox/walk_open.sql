-- Return the next open executions after `p_after` that are not suspended: at most `p_limit`, in the order of ids. `next` is the
-- id to continue after, or null at the end. A call of this function reads at most ten times `p_limit` rows of `live`, so it stays
-- short even if most of these executions are suspended.
-- planner: indexes
create or replace function walk_open(p_after uuid, p_limit integer, out ids uuid[], out next uuid)
language plpgsql
as $$
declare
    v_open uuid[];
begin
    v_open := array(select execution_id from live where execution_id > p_after order by execution_id limit 10 * p_limit);
    next := v_open[cardinality(v_open)];
    ids := array(
        select unnest(v_open)
        except select execution_id from suspended where execution_id > p_after and execution_id <= next
        order by 1 limit p_limit);
    if cardinality(ids) = p_limit then
        next := ids[p_limit];
    end if;
end $$;
