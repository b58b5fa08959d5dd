-- Create daily (UTC) partitions, for today and `p_ahead` more days, of the tables that grow with time. Return the number of new
-- daily partitions. Each table also has a default partition for rows of a day without its own, so a missing partition stops
-- nothing. Fires are partitioned by the day on which they were due.
-- If no process created partitions for a week, the default partition has rows of the new days. PostgreSQL then refuses the new
-- partition, so these rows are moved to it first (split_default_partition). Bounds are ISO dates with an offset, since PostgreSQL
-- would read other forms by the DateStyle of the session. A table of another role cannot be a partition, so the function has the
-- owner's rights.
create or replace function make_partitions(p_ahead integer) returns integer
language plpgsql security definer
as $$
declare
    v_parent text;
    v_day date;
    v_from text;
    v_to text;
    v_name text;
    v_made integer := 0;
begin
    perform pg_advisory_xact_lock(7, -3); -- replicas take turns here, and with the process that drops partitions
    foreach v_parent in array array['event', 'history', 'archive', 'archived_label', 'log_line', 'admission', 'fire'] loop
        if to_regclass(v_parent || '_default') is null then
            execute format('create table %I partition of %I default', v_parent || '_default', v_parent);
            perform copy_rights(v_parent, v_parent || '_default');
        end if;
        for v_day in select (now() at time zone 'utc')::date + n from generate_series(0, p_ahead) n loop
            v_name := v_parent || to_char(v_day, '_YYYYMMDD');
            v_from := to_char(v_day, 'YYYY-MM-DD') || ' 00:00:00+00';
            v_to := to_char(v_day + 1, 'YYYY-MM-DD') || ' 00:00:00+00';
            if to_regclass(v_name) is null then
                begin
                    execute format('create table %I partition of %I for values from (%L) to (%L)', v_name, v_parent,
                        v_from, v_to);
                exception when check_violation then
                    perform split_default_partition(v_parent, v_name, v_from, v_to);
                end;
                perform copy_rights(v_parent, v_name);
                v_made := v_made + 1;
            end if;
        end loop;
    end loop;
    return v_made;
end $$;
