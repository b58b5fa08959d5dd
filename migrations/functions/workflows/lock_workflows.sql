-- Lock workflows in the order of their ids until the transaction ends, so that one transaction at a time changes a workflow. The
-- state that the caller reads afterwards is the one that the last holder committed.
create or replace function lock_workflows(p_ids uuid[]) returns void
language plpgsql
as $$
declare
    v_id uuid;
begin
    for v_id in select distinct x from unnest(p_ids) x order by 1 loop
        perform pg_advisory_xact_lock(hashtextextended(v_id::text, 11));
    end loop;
end $$;
