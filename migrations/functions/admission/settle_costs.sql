-- Replace the reserved costs of attempts by the true costs that the attempts report, in the transaction that ends them. A true
-- cost counts in the window of each rate of its unit, and in the budget of the tree. The fence is the attempt and the claim (I2).
-- The rows are locked, so the worker keeps the attempts until the transaction ends. This function frees no slot: the end of the
-- attempts does that, and promotes the next waiters. The function has the owner's rights, so that no worker needs the right to
-- change the log of admissions.
-- planner: lookups
create or replace function settle_costs(p_worker uuid, p_ids uuid[], p_attempts integer[], p_units text[], p_amounts numeric[])
returns void
language plpgsql security definer
as $$
declare
    v_ids uuid[] := array(
        select e.id from execution e
        where e.id = any (p_ids) and e.claim = p_worker and e.status in ('running', 'canceling')
        order by e.id for no key update);
begin
    -- The slot has the same instant of admission as the log, and the index of the log begins with it.
    update admission a set cost = d.amount
    from unnest(p_ids, p_attempts, p_units, p_amounts) d (id, attempt, unit, amount)
    join execution e on e.id = d.id and e.attempt = d.attempt
    cross join lateral unnest(e.keys) k
    join concurrency_limit l on l.id = k.limit_id and l.unit = d.unit and l.cost is not null
    join slot s on s.limit_id = k.limit_id and s.group_value = k.group_value and s.execution_id = d.id
    where d.id = any (v_ids) and a.limit_id = s.limit_id and a.group_value = s.group_value and a.rated
        and a.admitted_at = s.admitted_at and a.execution_id = d.id and a.attempt = d.attempt;
    insert into budget_entry (owner, unit, execution_id, attempt, reserved, spent)
    select b.owner, d.unit, d.id, d.attempt, 0, d.amount
    from unnest(p_ids, p_attempts, p_units, p_amounts) d (id, attempt, unit, amount)
    join execution e on e.id = d.id and e.attempt = d.attempt
    join budget b on b.owner = budget_owner(e.parent, e.id) and b.unit = d.unit
    where d.id = any (v_ids)
    on conflict (owner, unit, execution_id, attempt) do update set spent = excluded.spent;
end $$;
