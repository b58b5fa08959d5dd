-- Store system events of one trigger, in the transaction of the moves that they report, and stage their messages. A tenant gets
-- an event only if one of its waiting tasks or an enabled rule asks for it. The rule is of that tenant or of all tenants.
-- `p_causes` has for each event the execution that caused it, or null. The event belongs to the chains of that execution.
-- Anything that descends from a system event raises no event of the same trigger (`chain_step.raised`), so no rule can start
-- itself. `p_once` has a key for each event: an event with a key that was stored before is left out. If `p_once` is null, the
-- events need no keys, since the move itself happens only once.
-- planner: lookups
create or replace function raise_events(
    p_trigger text, p_tenants text[], p_payloads jsonb[], p_causes uuid[], p_once text[] default null
) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    with wanted as materialized (
        -- The id is a UUIDv7 (RFC 9562) by the database's clock: 48 bits of milliseconds, then random bits.
        select encode(set_bit(set_bit(
                overlay(uuid_send(gen_random_uuid())
                    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
                52, 1), 53, 1), 'hex')::uuid as id, d.tenant, d.payload, d.once, s.id as cause, coalesce(s.depth, 0) as depth,
            coalesce(s.chains, '{}') as chains, coalesce(s.raised, '{}') as raised
        from unnest(p_tenants, p_payloads, p_causes, p_once) as d (tenant, payload, cause, once)
        left join chain_step s on s.id = root_of(d.cause)
        where p_trigger <> all (coalesce(s.raised, '{}')) and (
            exists (
                select from catalog c join definition f on f.id = c.definition_id
                where (c.trigger = p_trigger or c.triggers @> array[p_trigger]) and c.kind = 'rule' and c.enabled
                    and coalesce(f.body ->> 'tenant', d.tenant) = d.tenant)
            or exists (select from event_wait w where w.trigger = p_trigger and w.tenant = d.tenant))
    ), keyed as (
        insert into event_key (tenant, trigger, source, message_id, event_id, digest)
        select w.tenant, p_trigger, 'penstock', w.once, w.id, '' from wanted w where w.once is not null
        order by w.once on conflict do nothing
        returning event_id
    ), made as (
        insert into event (id, trigger, tenant, payload, source)
        select w.id, p_trigger, w.tenant, w.payload, 'penstock' from wanted w
        where w.once is null or w.id in (select event_id from keyed)
        returning id
    ), unread as (
        insert into unmatched (event_id) select id from made
    ), steps as (
        insert into chain_step (id, cause, name, depth, chains, raised)
        select w.id, w.cause, p_trigger, w.depth, w.chains, w.raised || p_trigger from wanted w join made m on m.id = w.id
    )
    select array_agg(id order by id) into v_ids from made;
    if v_ids is null then
        return '{}';
    end if;
    return stage('event.created', v_ids, 50);
end $$;
