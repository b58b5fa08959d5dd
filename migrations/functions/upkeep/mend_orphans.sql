-- Repair invariant I10d: take back attempts of workers that are gone. Neither a claim of an existing worker nor the heartbeat of
-- a live worker names such an attempt.
create or replace function mend_orphans(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    r record;
begin
    -- All rows are locked before all keys, for all workers at once. The recovery of each worker below locks its own rows and keys
    -- again.
    perform from execution where id = any (p_ids) order by id for no key update;
    perform lock_keys(keys_around(array(
        select distinct (h.limit_id, h.group_value)::limit_key from unnest(held_by(p_ids)) h)));
    for r in
        select e.claim as worker, array_agg(e.id order by e.id) as ids
        from execution e
        where e.id = any (p_ids) and e.status in ('running', 'canceling')
            and not exists (select from claim c where c.worker = e.claim and e.id = any (c.executions)
                            and exists (select from process p where p.id = c.worker))
            and not exists (select from process p
                            where p.id = e.claim and p.state <> 'dead' and e.id = any (p.holding))
        group by e.claim
    loop
        v_messages := v_messages
            || (recover_executions(r.worker, r.ids, 'its worker is gone (penstock repair)')).messages;
    end loop;
    return v_messages;
end $$;
