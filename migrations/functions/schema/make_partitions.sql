-- Make daily (UTC) partitions, for today and `p_ahead` more days, of the tables that grow with time (make_table_partitions). Each table
-- also has a default partition for rows of a day without one, so that a missing partition stops nothing. Return the number of new daily
-- partitions. Fires are partitioned by the day on which they were due. For an installation at work, the executor makes the
-- partitions of each table in a transaction of its own.
create or replace function make_partitions(p_ahead integer) returns integer
language plpgsql security definer
as $$
declare
    v_parent text;
    v_made integer := 0;
begin
    perform pg_advisory_xact_lock(7, -3); -- replicas take turns here, and with the process that drops partitions
    foreach v_parent in array array['event', 'history', 'archive', 'archived_label', 'log_line', 'admission', 'fire'] loop
        v_made := v_made + make_table_partitions(v_parent, p_ahead);
    end loop;
    return v_made;
end $$;
