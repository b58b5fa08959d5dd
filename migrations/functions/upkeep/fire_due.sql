-- Do one kind of due work: timers, wake rows, regrouping, inquiries, or waits for something outside. Each kind has its own
-- transaction, since it locks rows first and then keys. So has the work that follows if the clock of the database went back
-- (follow_clock). `did` is true if something was due, and more may be. `next_in` is the number of seconds until more may be due,
-- or null if nothing is known. While executions wait in lanes, it is at most 2 s. A transaction that frees a slot and cannot admit
-- the next execution may write a wake row at any time.
create or replace function fire_due(
    p_limit integer, out messages message[], out canceling uuid[], out did boolean, out next_in double precision
)
language plpgsql
as $$
declare
    v_shut integer[];
begin
    did := follow_clock();
    if did then
        messages := '{}';
        canceling := '{}';
    else
        select f.messages, f.canceling, f.fired > 0 into messages, canceling, did from fire_timers(p_limit) f;
    end if;
    if not did then
        select w.messages, w.woken into messages, did from wake_keys(p_limit) w;
    end if;
    if not did then
        select r.messages, r.regrouped into messages, did from regroup(p_limit) r;
    end if;
    if not did then
        select e.messages, e.expired <> '{}' into messages, did from expire_inquiries(p_limit) e;
    end if;
    if not did then
        select e.messages, e.expired <> '{}' into messages, did from expire_outside(p_limit) e;
    end if;
    v_shut := regrouping_limits();
    next_in := extract(epoch from least(
        (select min(due_at) from timer), (select min(at) from wake where limit_id is null or limit_id <> all (v_shut)),
        (select min(due_at) from inquiry where status = 'created'),
        (select min(w.due_at) from outside_wait w join execution e on e.id = w.execution_id
         where w.due_at is not null and e.status = 'waiting'),
        (select clock_timestamp() + interval '2 seconds' from lane limit 1)) - clock_timestamp());
end $$;
