-- The next open executions after p_after that do not sleep, at most p_limit, by their ids, and `next`, the id to go on after;
-- null at the end. Of ten times as many rows of `live` at most: however many sleep, a step stays a step, and they cost
-- a page for some hundreds of them.
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
