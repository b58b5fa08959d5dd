-- Move instants that only workers and the API write by `p_back`, as follow_clock moves the others. They are later than `p_now`, the
-- present instant, and become at most that instant:
-- - permits of workers, which count for 5 s
-- - failed sign-ins, of which too many refuse the next one for a while
-- - uses of sessions, which end when they are not used
-- - instants since which rules watch for the events of their windows
-- The function has the owner's rights, so that an executor needs no right to these tables.
-- planner: indexes
create or replace function follow_clock_elsewhere(p_now timestamptz, p_back interval) returns void
language plpgsql security definer
as $$
declare
    v_now constant timestamptz := least(p_now, clock_timestamp());
begin
    update permit set at = least(at - p_back, v_now)
    where ctid = any (array(select ctid from permit where at > v_now for update skip locked));
    update login_failure set at = least(at - p_back, v_now)
    where ctid = any (array(select ctid from login_failure where at > v_now for update skip locked));
    update person_session set seen_at = least(seen_at - p_back, v_now)
    where ctid = any (array(select ctid from person_session where seen_at > v_now for no key update skip locked));
    update catalog set watches_since = least(watches_since - p_back, v_now)
    where ctid = any (array(select ctid from catalog where watches_since > v_now for no key update skip locked));
end $$;
