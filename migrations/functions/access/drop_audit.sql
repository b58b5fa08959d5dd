-- Delete the oldest sealed rows of the audit, at most `p_most`. Each is older than `p_days` days, and no younger row lies between
-- them. Write the position and seal of the last deleted row to `audit_chain`, where the remaining rows begin. Add a row to the
-- audit that records the deletion. Return the deleted rows.
create or replace function drop_audit(p_days integer, p_most integer) returns setof audit
language plpgsql security definer
as $$
declare
    v_chain audit_chain;
    v_until bigint;
    v_seal bytea;
begin
    if p_days < 1 then
        raise exception 'rows of the audit are kept for a day at least';
    end if;
    select * into v_chain from audit_chain for update;
    with oldest as (
        select a.position, a.at from audit a where a.position > v_chain.dropped_position order by a.position limit p_most
    )
    select coalesce(
        (select min(o.position) - 1 from oldest o where o.at >= now() - make_interval(days => p_days)),
        (select max(o.position) from oldest o)
    ) into v_until;
    if v_until is null or v_until <= v_chain.dropped_position then
        return;
    end if;
    select a.seal into v_seal from audit a where a.position = v_until;
    insert into audit (by, operation, target, outcome, details)
    values ('penstock', 'audit_drop', 'audit', 'done', format(
        '{"days":%s,"first":%s,"last":%s,"seal":"%s"}', p_days, v_chain.dropped_position + 1, v_until, encode(v_seal, 'hex')));
    update audit_chain set dropped_position = v_until, dropped_seal = v_seal;
    return query delete from audit a where a.position <= v_until returning a.*;
end $$;
