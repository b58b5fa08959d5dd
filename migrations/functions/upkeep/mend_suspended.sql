-- Repair invariant I10g: wake the suspended functions `p_ids`, which have what they wait for, and delete suspensions of functions
-- that no longer wait.
create or replace function mend_suspended(p_ids uuid[]) returns message[]
language plpgsql
as $$
begin
    return wake_functions(p_ids, 'what the execution waits for had arrived before (penstock repair)');
end $$;
