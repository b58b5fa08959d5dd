-- How many more may start under each of these keys: its limit less its holders, and no more than its rate allows.
-- The caller holds the keys' locks. Where only the rate stands in the way, a wake row marks the next free instant.
create or replace function key_room(p_keys text[]) returns setof room
language plpgsql
as $$
declare
    r record;
    v_now timestamptz := clock_timestamp();
    v_next timestamptz;
    v_free integer;
begin
    return query
    select k.key, s.held, l.max, false, greatest(l.max - s.held, 0)
    from unnest(p_keys) k (key) join concurrency_limit l on l.id = split_part(k.key, ':', 1)::integer
    cross join lateral (select count(*)::integer as held from slot s where s.key = k.key) s
    where l.rate_count is null;
    if not exists (select from concurrency_limit l where l.rate_count is not null) then
        return;
    end if;

    for r in
        select k.key, l.max, l.rate_count, l.rate_seconds,
            case when l.max = 2147483647 then 0 else (select count(*) from slot s where s.key = k.key) end::integer as held
        from unnest(p_keys) k (key) join concurrency_limit l on l.id = split_part(k.key, ':', 1)::integer
        where l.rate_count is not null
    loop
        v_free := greatest(r.max - r.held, 0);
        if v_free > 0 then
            if exists (select from wake w where w.key = r.key and w.at > v_now) then
                v_free := 0;
            else
                select least(v_free, r.rate_count - count(*)), min(a.admitted_at) + make_interval(secs => r.rate_seconds)
                into v_free, v_next
                from admission a
                where a.key = r.key and a.rated and a.admitted_at > v_now - make_interval(secs => r.rate_seconds);
                if v_free <= 0 then
                    v_free := 0;
                    insert into wake (key, at) values (r.key, v_next);
                end if;
            end if;
        end if;
        return next (r.key, r.held, r.max, true, v_free)::room;
    end loop;
end $$;
