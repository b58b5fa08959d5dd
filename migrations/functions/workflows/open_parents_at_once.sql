-- Open the parents of executions that this transaction has ended, as open_parents does, but without waiting. This transaction
-- holds the locks of the ended rows. Another transaction may hold a workflow's lock or row and wait for those rows, so waiting
-- could deadlock. Return nothing if a lock or row is not free. Also return nothing if one of the executions held slots, since a
-- holder of keys never waits for a row. Otherwise delete the messages `p_told`, which this transaction staged to announce the
-- ends.
-- planner: lookups_planned_once
create or replace function open_parents_at_once(p_ids uuid[], p_told bigint[]) returns table (
    id uuid, status text, parent uuid, task text, item integer, followed boolean,
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops integer,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_parents uuid[];
    v_parent uuid;
    v_limited boolean;
begin
    select array_agg(distinct e.parent order by e.parent), bool_or(e.keys is not null) into v_parents, v_limited
    from execution e where e.id = any (p_ids);
    if v_parents is null or v_limited then
        return;
    end if;
    v_parents := array_remove(v_parents, null);
    foreach v_parent in array v_parents loop
        if not pg_try_advisory_xact_lock(hashtextextended(v_parent::text, 11)) then
            return;
        end if;
        -- A transaction that cancels the workflow together with its tasks locks this row first.
        perform from workflow w where w.execution_id = v_parent for no key update skip locked;
        if not found then
            return;
        end if;
    end loop;
    delete from outbox o where o.id = any (p_told);
    return query select * from open_parents(p_ids);
end $$;
