-- What submit_executions does, where it is the whole transaction: then those that are under limits are admitted or put in line with
-- it, so that whoever starts one after another finds them in that order. Many are left to an executor: the locks of their keys
-- would be held while they are all written.
-- planner: lookups_planned_once
create or replace function submit_alone(
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_priorities smallint[], p_not_before timestamptz[], p_expires timestamptz[], p_tenants text[], p_keys text[],
    p_digests text[],
    out messages message[], out stale boolean, out existing replaced_id[], out conflicts replaced_id[]
)
language plpgsql
as $$
declare
    v_most constant integer := 10;
    v_asking message[];
    v_answer message[];
begin
    select s.messages, s.stale, s.existing, s.conflicts into messages, stale, existing, conflicts
    from submit_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, p_priorities, p_not_before,
        p_expires, p_tenants, p_keys, p_digests) s;
    if (select sum(cardinality(m.ids)) from unnest(messages) m where m.queue = 'execution.requested') between 1 and v_most then
        v_asking := array(select m from unnest(messages) m where m.queue = 'execution.requested');
        v_answer := request_slots_soon(array(select unnest(m.ids) from unnest(v_asking) m));
    end if;
    if v_answer is not null then -- nobody has to be asked
        delete from outbox where id = any (array(select m.outbox_id from unnest(v_asking) m));
        messages := array(select m from unnest(messages) m where m.queue <> 'execution.requested') || v_answer;
    end if;
end $$;
