-- requested -> queued: these rows are open no more, and know the keys that they wait for.
-- planner: hashed
create or replace function queue_rows(p_wanted wanted[]) returns void
language plpgsql
as $$
declare
    v_ids uuid[] := array(select w.id from unnest(p_wanted) w);
begin
    update execution e set status = 'queued', keys = w.keys from unnest(p_wanted) w where e.id = any (v_ids) and e.id = w.id;
    delete from live where execution_id = any (v_ids);
end $$;
