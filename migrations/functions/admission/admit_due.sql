-- Those that are requested and due. Their rows are locked before their keys, and after the rows of those without limits: also
-- rows of some that lost their limits, or became due, since these were looked at.
create or replace function admit_due(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[] := array(
        select id from execution
        where id = any (p_ids) and status = 'requested' and (not_before is null or not_before <= clock_timestamp())
        order by id for no key update);
begin
    if v_ids = '{}' then
        return '{}';
    end if;
    return admit_executions(v_ids);
end $$;
