-- Claim parked executions of a queue for a worker that calls a gateway, as claim_parked does for other workers. The history names
-- `p_actor`. A worker that is not active claims nothing. With `p_tenants`, the worker claims only executions of these tenants,
-- oldest first and without regard to priorities. Then `waits` is true if as many were parked as the worker asked for.
-- planner: lookups
create or replace function claim_parked_remotely(
    p_actor text, p_worker uuid, p_claim uuid, p_take integer, p_queue text, p_definitions integer[], p_lacking integer[],
    p_tenants text[],
    out claimed claimed_attempt[], out unknown integer[], out messages message[], out waits boolean
)
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    perform set_config('application_name', p_actor, true);
    claimed := '{}';
    unknown := '{}';
    messages := '{}';
    waits := false;
    if p_take < 1 or not exists (select from process where id = p_worker and state = 'active') then
        return;
    end if;
    if p_tenants is null then
        select c.claimed, c.unknown, c.messages, c.waits into claimed, unknown, messages, waits
        from claim_parked(p_worker, p_claim, p_take, p_queue, p_definitions, p_lacking, '{}') c;
        return;
    end if;
    unknown := array(
        select distinct k.definition_id from parked k
        where k.queue = p_queue and k.definition_id <> all (p_definitions) and k.definition_id <> all (p_lacking));
    v_ids := array(
        select k.execution_id from parked k
        join execution e on e.id = k.execution_id join namespace n on n.id = e.namespace_id
        where k.queue = p_queue and k.definition_id = any (p_definitions) and split_part(n.name, '::', 1) = any (p_tenants)
        order by k.ready_at, k.execution_id limit p_take for update of k skip locked);
    if v_ids = '{}' then
        return;
    end if;
    waits := cardinality(v_ids) = p_take;
    select c.claimed, c.messages into claimed, messages
    from claim_named(p_worker, p_claim, v_ids, p_take, p_queue, p_definitions, p_lacking) c;
    delete from parked k
    where k.execution_id = any (v_ids) and k.queue = p_queue and not exists (
        select from execution e join namespace n on n.id = e.namespace_id
        where e.id = k.execution_id and e.status = 'scheduled' and n.queue = p_queue);
end $$;
