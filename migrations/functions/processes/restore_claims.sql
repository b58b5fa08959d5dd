-- Insert claims of running attempts that no claim of their worker names. A fault has deleted such a claim, and a sweep of claims
-- would never find the attempt. With a claim, the attempt is treated as any other. If the worker lives and neither of its next two
-- heartbeats names the attempt, the attempt is lost (beat). If the worker is gone, its work is taken back (reap_process,
-- reap_claims). This function never takes an attempt back itself. It looks at the next `p_limit` open executions after the id
-- `p_after`, in the same steps as restage_lost, and returns the number of claims.
-- A restored claim has the id of its execution. It is deleted once it does not name the owner of a running attempt any more.
-- planner: indexes
create or replace function restore_claims(p_after uuid, p_limit integer) returns integer
language plpgsql
as $$
declare
    v_ids constant uuid[] := (select ids from walk_open(p_after, p_limit));
    v_unclaimed uuid[];
    v_restored integer := 0;
begin
    v_unclaimed := find_unclaimed(v_ids);
    if v_unclaimed <> '{}' then
        -- A worker may end the attempt between two statements, and another worker may claim the next one. Both change the row of
        -- the execution, and the claim in the same transaction. So the second look, which sees all that was committed before the
        -- lock, is exact. Rows that another transaction has locked are left to a later call.
        v_unclaimed := array(
            select id from execution where id = any (v_unclaimed) order by id for no key update skip locked);
        v_unclaimed := find_unclaimed(v_unclaimed);
        -- It is not an assigned claim: the worker would begin such an attempt, although it may run already.
        insert into claim (id, worker, executions)
        select e.id, e.claim, array[e.id] from execution e where e.id = any (v_unclaimed)
        on conflict (id) do update
        set worker = excluded.worker, executions = excluded.executions, assigned = false, claimed_at = clock_timestamp();
        get diagnostics v_restored = row_count;
    end if;
    if p_after = '00000000-0000-0000-0000-000000000000' then
        delete from claim c
        where c.id = c.executions[1] and not exists (
            select from execution e where e.id = c.id and e.claim = c.worker and e.status in ('running', 'canceling'));
    end if;
    return v_restored;
end $$;
