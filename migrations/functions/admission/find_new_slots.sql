-- Lock the keys of executions that are about to be created and are due. Return in `free` the executions that may be created
-- together with their slots. Each of their keys has room for all executions of this call of the function, and has no waiter. No
-- other transaction sees the new rows yet, so keys may be locked before rows.
-- The caller decides how long the function waits for the locks:
--   * An executor (`p_fused`: it creates and schedules in one call) waits until it has them.
--   * A submit of at most 10 executions waits at most 50 ms for each key, since the holder of a lock can be stuck.
--   * A submit of 11 to 100 executions does the same, but leaves out keys with waiters. A transaction that frees a slot there
--     would wait for the submit.
--   * A submit of more than 100 executions locks no key. Nor does one that cannot lock the placement at once.
-- `locked` is true if all keys are locked, so that executions without room can join their lanes now. `locked` is false for every
-- submit of more than 10 executions. `rooms` is the room of each locked key.
-- planner: lookups
create or replace function find_new_slots(
    p_ids uuid[], p_namespaces integer[], p_params text[], p_priorities smallint[], p_not_before timestamptz[],
    p_parents uuid[], p_definitions integer[], p_options text[], p_fused boolean,
    out free candidate[], out rooms room[], out locked boolean
)
language plpgsql
as $$
declare
    v_few constant integer := 10;
    v_many constant integer := 100;
    v_asking candidate[];
    v_keys limit_key[];
    v_counts integer[];
    v_closed limit_key[];
begin
    locked := p_fused or cardinality(p_ids) <= v_few;
    if p_fused then
        perform lock_placement();
    elsif cardinality(p_ids) > v_many or not pg_try_advisory_xact_lock_shared(7, -1) then
        locked := false;
        return;
    end if;
    v_asking := array(
        select (d.id, n.id, n.kind, n.queue, n.envelope, n.away_since is not null, 0, -coalesce(d.priority, 0)::smallint, null, k.keys,
            null, null, null, null, 0, null, null, null)::candidate
        from unnest(p_ids, p_namespaces, p_params, p_priorities, p_not_before, p_parents, p_definitions, p_options)
            as d (id, namespace_id, params, priority, not_before, parent, definition_id, options)
        join namespace n on n.id = d.namespace_id
        cross join lateral keys_needed(n.limits, n.kind, d.parent, d.id, d.params::jsonb, d.definition_id, d.options) k
        where d.not_before is null and k.keys is not null);
    v_asking := set_costs(v_asking, p_ids, p_params);
    if exists (select from unnest(v_asking) c where c.costs is not null) then
        -- A candidate that costs more than its limits allow is left out here. request_slots refuses it once its row is stored.
        v_asking := array(select c from unnest(v_asking) c where c.id not in (select t.id from too_costly(v_asking) t));
    end if;
    select keys, counts into v_keys, v_counts from count_keys(v_asking);
    if not locked then
        v_closed := array(
            select k from unnest(v_keys) k
            where exists (select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value));
        if v_closed <> '{}' then
            v_asking := array(
                select c from unnest(v_asking) c where not exists (select from unnest(c.keys) k where k = any (v_closed)));
            select keys, counts into v_keys, v_counts from count_keys(v_asking);
        end if;
    end if;
    if v_asking = '{}' then
        return;
    elsif p_fused then
        perform lock_keys(v_keys);
    elsif not lock_keys_soon(v_keys) then
        locked := false;
        return;
    end if;
    select r.p_free, r.p_rooms into free, rooms from find_room(v_asking, v_keys, v_counts) r;
end $$;
