-- Claim executions for a worker that calls a gateway, by a message of its queue, as claim_executions does for other workers. The
-- history names `p_actor`. If the worker is not active, it claims nothing, and the executions return to their route. With
-- `p_tenants`, the worker claims only executions of these tenants, in the order of the message, even on an ordered route. The
-- executions of other tenants are parked for another worker.
-- planner: lookups_planned_once
create or replace function claim_remotely(
    p_actor text, p_worker uuid, p_claim uuid, p_ids uuid[], p_take integer, p_queue text, p_definitions integer[],
    p_lacking integer[], p_tenants text[],
    out claimed claimed_attempt[], out unknown integer[], out messages message[], out parked boolean
)
language plpgsql
as $$
declare
    v_take integer := p_take;
    v_own uuid[];
    v_others uuid[];
begin
    perform set_config('application_name', p_actor, true);
    if not exists (select from process where id = p_worker and state = 'active') then
        v_take := 0;
    end if;
    if p_tenants is null then
        select c.claimed, c.unknown, c.messages, c.parked into claimed, unknown, messages, parked
        from claim_executions(p_worker, p_claim, p_ids, v_take, p_queue, p_definitions, p_lacking) c;
        return;
    end if;
    v_own := array(
        select e.id from unnest(p_ids) with ordinality i (id, place)
        join execution e on e.id = i.id join namespace n on n.id = e.namespace_id
        where split_part(n.name, '::', 1) = any (p_tenants) order by i.place);
    v_others := array(select i from unnest(p_ids) i where i <> all (v_own));
    select c.claimed, c.unknown, c.messages, c.parked into claimed, unknown, messages, parked
    from claim_named(p_worker, p_claim, v_own, v_take, p_queue, p_definitions, p_lacking) c;
    if park_executions(p_worker, v_others, v_others, p_queue, '{}', '{}') then
        parked := true;
    end if;
end $$;
