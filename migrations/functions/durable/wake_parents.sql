-- Wake the suspended functions among `p_parents` that wait for one of the ended children `p_ended`. A function can have read the
-- end of a child while it ran, and wait for something else by now. Its wake would cost an attempt that finds nothing new.
-- planner: lookups
create or replace function wake_parents(p_parents uuid[], p_ended uuid[], p_reason text) returns message[]
language plpgsql
as $$
begin
    -- All rows are locked before the look at the suspensions, as in wake_functions. A transaction that suspends a function may have
    -- looked for the end of the child already and still be open.
    perform from execution where id = any (p_parents) order by id for no key update;
    return wake_functions(array(
        select s.execution_id from suspended s where s.execution_id = any (p_parents) and s.children && p_ended order by 1), p_reason);
end $$;
