-- Choose the executions of an ordered route that a worker claims by the message `p_ids`, and delete them from the backlog. Each
-- execution that the message names stands for one turn, and each turn chooses one execution, at most `p_most` in all. `chosen` is
-- null if the route is not ordered any more. `others` are executions that the caller stages again: one that waits for each unused
-- turn, and those of `p_ids` that belong to another route. The order is:
-- - By priority. Every tenth turn goes to a lower priority that has waiting executions. The lower priorities alternate in these
--   turns, so none of them starves.
-- - Within a priority, the tenants alternate, in the order of their names.
-- - Within a tenant, by the age of the outermost workflow, and then by the age of the execution.
-- Claims of one route wait for each other on its row in `route_turn`. Apart from that the function waits for no lock, since it
-- skips locked rows.
-- planner: lookups_planned_once
create or replace function choose_from_backlog(p_queue text, p_ids uuid[], p_most integer, out chosen uuid[], out others uuid[])
language plpgsql
as $$
declare
    v_wanted constant integer := least(cardinality(p_ids), p_most);
    v_route route_turn;
    v_first smallint;
    v_last smallint;
    v_rank smallint;
    v_size integer;
    v_next uuid[];
begin
    insert into route_turn (queue) select p_queue where not exists (select from route_turn where queue = p_queue)
    on conflict do nothing;
    select * into v_route from route_turn where queue = p_queue for no key update;
    if not exists (select from ordered_route where queue = p_queue) then -- tidy_backlog has just ended the order
        return;
    end if;
    perform join_backlog(p_queue, p_ids);
    chosen := '{}';
    while cardinality(chosen) < v_wanted loop
        select min(rank), max(rank) into v_first, v_last from backlog where queue = p_queue;
        exit when v_first is null;
        v_rank := v_first;
        v_size := v_wanted - cardinality(chosen);
        if v_first < v_last then
            if v_route.turns % 10 = 9 then
                v_rank := coalesce(
                    (select min(rank) from backlog where queue = p_queue and rank > greatest(v_first, v_route.rank)),
                    (select min(rank) from backlog where queue = p_queue and rank > v_first));
                v_route.rank := v_rank;
                v_size := 1;
            else
                v_size := least(v_size, 9 - v_route.turns % 10);
            end if;
        end if;
        v_next := take_turn(p_queue, v_rank, v_size, p_ids[1]);
        if v_next = '{}' then
            v_next := take_any(p_queue, v_rank, v_size);
            exit when v_next = '{}';
        end if;
        chosen := chosen || v_next;
        v_route.turns := v_route.turns + cardinality(v_next);
    end loop;
    update route_turn set turns = v_route.turns, rank = v_route.rank where queue = p_queue;
    others := array(
        select execution_id from backlog where queue = p_queue and execution_id = any (p_ids)
        order by array_position(p_ids, execution_id) limit cardinality(p_ids) - cardinality(chosen));
    if cardinality(chosen) + cardinality(others) < cardinality(p_ids) then
        others := others || array(
            select execution_id from backlog where queue = p_queue and execution_id <> all (others)
            order by rank, tenant, root_at limit cardinality(p_ids) - cardinality(chosen) - cardinality(others));
        others := others || array(
            select e.id from execution e join namespace n on n.id = e.namespace_id
            where e.id = any (p_ids) and e.status = 'scheduled' and n.queue <> p_queue);
    end if;
end $$;
