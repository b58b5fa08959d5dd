-- Mark the lanes of the namespaces `p_namespaces` for regrouping, since limits changed. Replace the wake rows of the limits
-- `p_limits` by one for each key at which a lane still waits. The caller holds the placement lock exclusively, so no transaction
-- promotes or joins a lane meanwhile.
create or replace function limits_changed(p_namespaces integer[], p_limits integer[]) returns void
language plpgsql
as $$
begin
    update lane set gate_kind = 'regroup', gate_limit = null, gate_group = null, moved_at = clock_timestamp()
    where namespace_id = any (p_namespaces);
    delete from wake where limit_id = any (p_limits);
    insert into wake (limit_id, group_value)
    select distinct gate_limit, gate_group from lane where gate_limit = any (p_limits);
end $$;
