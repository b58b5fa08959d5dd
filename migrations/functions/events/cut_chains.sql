-- Count each execution that a rule is about to start, in all chains that it belongs to. Return an array in the order of `p_ids`:
-- an error for each execution of which a chain is full, else null. Matches in `p_errors` keep their error, and count nothing. A
-- match that another delivery of the event has enforced counts nothing either. With `p_again`, the caller evaluates failed
-- enforcements again, and holds the locks of their rows. The rows of the chains stay locked, so two executors cannot both count
-- the last permitted execution. When a chain is cut for the first time, write a dead letter.
-- planner: lookups
create or replace function cut_chains(
    p_ids uuid[], p_events uuid[], p_rules text[], p_options text[], p_errors text[], p_again boolean
) returns text[]
language plpgsql
as $$
declare
    v_errors text[] := p_errors;
    v_chains uuid[];
    v_full chain;
    r record;
begin
    if not exists (select from chain_step where id = any (p_events))
            and not exists (select from unnest(p_options) o where o like '%"max_de%') then
        return v_errors;
    end if;
    perform from chain
    where id = any (array(select unnest(s.chains) from chain_step s where s.id = any (p_events)))
    order by id for no key update;

    for r in
        select d.*, s.depth, s.chains, s.raised, (d.options::jsonb ->> 'max_depth')::integer as max_depth,
            (d.options::jsonb ->> 'max_descendants')::integer as max_descendants
        from unnest(p_ids, p_events, p_rules, p_options, p_errors) with ordinality
            as d (id, event_id, rule, options, error, place)
        left join chain_step s on s.id = d.event_id
        where d.error is null and (s.id is not null or d.options like '%"max_de%')
            and p_again = exists (select from enforcement n where n.event_id = d.event_id and n.rule = d.rule
                and (n.error is not null or not p_again))
        order by d.event_id, d.rule
    loop
        v_chains := coalesce(r.chains, '{}');
        if r.max_depth is not null or r.max_descendants is not null then
            update chain set max_depth = r.max_depth, max_descendants = r.max_descendants
            where id = any (v_chains) and rule = r.rule
                and (max_depth, max_descendants) is distinct from (r.max_depth, r.max_descendants);
            if not exists (select from chain where id = any (v_chains) and rule = r.rule) then
                insert into chain (id, rule, max_depth, max_descendants, depth)
                values (r.id, r.rule, r.max_depth, r.max_descendants, coalesce(r.depth, 0));
                v_chains := v_chains || r.id;
            end if;
        end if;
        select * into v_full from chain
        where id = any (v_chains) and (descendants >= max_descendants or coalesce(r.depth, 0) + 1 - depth > max_depth)
        order by id limit 1;
        if found then
            v_errors[r.place] := describe_cut(v_full, r.event_id, r.rule);
            if v_full.cut_at is null then
                update chain set cut_at = clock_timestamp() where id = v_full.id;
                insert into dead_letter (id, queue, reason, type, body, fingerprint)
                values (gen_random_uuid(), 'event.created', v_errors[r.place], 'event.created',
                    convert_to(jsonb_build_object('v', 1, 'type', 'event.created', 'ids', array[r.event_id])::text, 'utf8'),
                    encode(sha256(convert_to('chain ' || v_full.id, 'utf8')), 'hex'))
                on conflict (fingerprint) do nothing;
            end if;
            delete from chain where id = r.id; -- its own chain begins only if its execution starts
        else
            update chain set descendants = descendants + 1 where id = any (v_chains);
            insert into chain_step (id, cause, name, depth, chains, raised)
            values (r.id, r.event_id, r.rule, coalesce(r.depth, 0) + 1, v_chains, coalesce(r.raised, '{}'));
        end if;
    end loop;
    return v_errors;
end $$;
