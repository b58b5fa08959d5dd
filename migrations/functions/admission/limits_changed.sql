-- Limits changed: everybody who waits for these executions' namespaces, or under these limits, is to be looked at anew.
-- The caller holds the placement alone, so nobody promotes or joins a line meanwhile.
create or replace function limits_changed(p_namespaces integer[], p_limits integer[]) returns void
language plpgsql
as $$
begin
    update lane set gate = 'regroup', moved_at = clock_timestamp() where namespace_id = any (p_namespaces);
    delete from wake where split_part(key, ':', 1) = any (p_limits::text[]);
    insert into wake (key) select distinct gate from lane where split_part(gate, ':', 1) = any (p_limits::text[]);
end $$;
