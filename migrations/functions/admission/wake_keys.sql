-- Looks again at keys that somebody freed a slot of without being able to lock what else it takes, of which the rate
-- allows another start now, or whose limit changed; and at executions whose worker has come.
-- planner: lookups
create or replace function wake_keys(p_limit integer, out messages message[], out woken boolean)
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_due text[] := array(select distinct x.key from (select key from wake where at <= v_now order by at limit p_limit) x);
begin
    messages := '{}';
    woken := false;
    if v_due = '{}' then
        return;
    end if;
    perform lock_keys(keys_around(v_due));
    delete from wake where key = any (v_due) and at <= v_now;
    if found then
        woken := true;
        messages := promote(v_due);
    end if;
end $$;
