-- Claim parked executions of a queue for a worker, by priority and age, as claim_named claims an envelope. Their definitions are
-- those that the worker does not lack and has room for. Executions that are not claimed stay parked. `waits` is true if there are
-- parked executions that the worker does not lack. `unknown` are definitions that the worker has to look up first. Their
-- executions are not locked, because another worker that has the action would skip locked rows, and look again much later.
-- planner: lookups
create or replace function claim_parked(
    p_worker uuid, p_claim uuid, p_take integer, p_queue text, p_definitions integer[], p_lacking integer[],
    p_limited executor_room[],
    out claimed claimed_attempt[], out unknown integer[], out messages message[], out waits boolean
)
language plpgsql
as $$
declare
    v_definitions integer[];
    v_ids uuid[];
begin
    claimed := '{}';
    messages := '{}';
    -- The recursion takes one step in the index for each definition, however many executions are parked.
    v_definitions := array(
        with recursive found (definition_id) as (
            select min(definition_id) from parked where queue = p_queue
            union all
            select (select min(definition_id) from parked k where k.queue = p_queue and k.definition_id > f.definition_id)
            from found f where f.definition_id is not null
        )
        select definition_id from found where definition_id is not null and definition_id <> all (p_lacking));
    waits := v_definitions <> '{}';
    unknown := array(select d from unnest(v_definitions) d where d <> all (p_definitions));
    select array_agg(x.execution_id) into v_ids
    from (
        select k.* from unnest(v_definitions) d (definition_id)
        left join unnest(p_limited) l on l.definition_id = d.definition_id
        cross join lateral (
            select execution_id, rank, ready_at from parked
            where queue = p_queue and definition_id = d.definition_id and d.definition_id = any (p_definitions)
            order by rank, ready_at, execution_id limit least(p_take, l.room) for update skip locked
        ) k
        order by k.rank, k.ready_at, k.execution_id limit p_take
    ) x;
    if v_ids is null then
        return;
    end if;
    select c.claimed, c.messages into claimed, messages
    from claim_named(p_worker, p_claim, v_ids, p_take, p_queue, p_definitions, p_lacking, p_limited) c;
    delete from parked k
    where k.execution_id = any (v_ids) and k.queue = p_queue and not exists (
        select from execution e join namespace n on n.id = e.namespace_id
        where e.id = k.execution_id and e.status = 'scheduled' and n.queue = p_queue);
end $$;
