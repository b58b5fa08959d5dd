-- Claim executions for a worker by a message of its queue. On most routes, the worker claims the executions that the message
-- names (claim_named). On an ordered route, the message gives the worker as many turns as it names executions, and
-- choose_from_backlog chooses an execution for each turn. Turns for which the worker has no slot are staged again.
-- planner: lookups_planned_once
create or replace function claim_executions(
    p_worker uuid, p_claim uuid, p_ids uuid[], p_take integer, p_queue text, p_definitions integer[],
    p_lacking integer[], p_limited executor_room[] default '{}',
    out claimed claimed_attempt[], out unknown integer[], out messages message[], out parked boolean
)
language plpgsql security definer
as $$
declare
    v_chosen uuid[];
    v_others uuid[];
begin
    if exists (select from ordered_route where queue = p_queue) then
        select b.chosen, b.others into v_chosen, v_others from choose_from_backlog(p_queue, p_ids, p_take) b;
    end if;
    if v_chosen is null then
        select c.claimed, c.unknown, c.messages, c.parked into claimed, unknown, messages, parked
        from claim_named(p_worker, p_claim, p_ids, p_take, p_queue, p_definitions, p_lacking, p_limited) c;
        return;
    end if;
    select c.claimed, c.unknown, c.messages, c.parked into claimed, unknown, messages, parked
    from claim_named(p_worker, p_claim, v_chosen, cardinality(v_chosen), p_queue, p_definitions, p_lacking, p_limited) c;
    if unknown <> '{}' then
        perform join_backlog(p_queue, v_chosen);
    end if;
    if v_others <> '{}' then
        messages := messages || hand_back(v_others, '{}', p_queue, '{}');
    end if;
end $$;
