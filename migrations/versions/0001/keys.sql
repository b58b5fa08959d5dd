-- Where several limits meet, everybody takes their locks in this order: rows of executions, the placement, the keys.
-- Whoever holds keys never waits for a row: it skips those that others hold. So nobody waits in a circle.
-- Advisory locks of class 7: -1 is the placement, -2 the workers, -3 the partitions, the others are keys.

-- No limit is added, removed or grouped anew until the transaction ends. `penstock apply` takes the same lock alone.
create function lock_placement() returns void
language sql
as $$
    select pg_advisory_xact_lock_shared(7, -1)
$$;

-- Locks keys until the transaction ends. What is counted or decided for a key is read in a later statement, which sees
-- what the lock's former holder has committed. Keys share 2,048 locks, so that no batch exhausts PostgreSQL's lock table.
create function lock_keys(p_keys text[]) returns void
language plpgsql
as $$
begin
    perform lock_placement();
    perform pg_advisory_xact_lock(7, x.lock) from (select distinct hashtext(k) & 2047 as lock from unnest(p_keys) k order by 1) x;
end $$;

-- These keys, and those that the first who stand before them need as well. What is about to free slots locks them together,
-- in one order, so that nobody has to be passed over because of a key that was found too late.
create function keys_around(p_keys text[]) returns text[]
language plpgsql stable
as $$
begin
    return array(
        select k from unnest(p_keys) k
        union
        select k from unnest(p_keys) g
        cross join lateral (
            select keys from lane l where l.gate = g order by l.rank, l.place, l.ready_at, l.execution_id limit 50) l
        cross join unnest(l.keys) k where cardinality(l.keys) > 1 or g like 'worker:%'
    );
end $$;

-- What an execution that is ready to start needs. `rank` is minus its priority; `away`: no live worker runs it.
-- `keys` are those of its limits, null where it has none. Those of the same `lane` wait in one line.
-- `fair` is the key between whose groups turns are taken, `fair_group` the group.
create type wanted as (
    id uuid, namespace_id integer, queue text, envelope smallint, away boolean, attempt smallint, rank smallint,
    ready_at timestamptz, keys text[], lane text, fair text, fair_group text
);

-- The values of parameters as text that is the same for the same values only. A missing one is null. Long texts are
-- cut, with a hash of the whole.
create function group_of(p_paths text[], p_params jsonb) returns text
language plpgsql stable
as $$
declare
    v_group text;
begin
    if cardinality(p_paths) = 1 then
        v_group := jsonb_build_array(p_params #> string_to_array(p_paths[1], '.'))::text;
    else
        v_group := (select jsonb_agg(p_params #> string_to_array(b.path, '.') order by b.n)::text
                    from unnest(p_paths) with ordinality as b (path, n));
    end if;
    return case when octet_length(v_group) <= 64 then v_group else left(v_group, 16) || '~' || md5(v_group) end;
end $$;

-- A key is a limit's id and, where the limit is grouped, the values of its parameters. A workflow that runs inside
-- another one needs no slot of a limit that the other one holds a slot of: it would wait for its own parent.
create function wanted_keys(p_ids uuid[]) returns setof wanted
language sql stable
as $$
    select e.id, e.namespace_id, n.queue, n.envelope, n.away_since is not null, e.attempt,
        (-e.priority)::smallint, e.ready_at, k.keys,
        e.namespace_id || '|' || coalesce(f.fair::text, '') || '|' || array_to_string(k.keys, '|'),
        f.key, case when f.key is not null
               then f.key || group_of(f.fair, (select p.params from payload p where p.execution_id = e.id)) end
    from execution e
    join namespace n on n.id = e.namespace_id
    cross join lateral (
        select array_agg(g.key order by g.key) as keys, min(g.id) filter (where g.fair <> '{}') as fair_id
        from (
            select l.id, l.fair, l.id || ':' || case when l.by = '{}' then ''
                else group_of(l.by, (select p.params from payload p where p.execution_id = e.id)) end as key
            from unnest(n.limits) a (id) join concurrency_limit l on l.id = a.id
            where e.parent is null or n.queue like 'work.%' or not exists (
                with recursive above as (
                    select e.parent as id
                    union all
                    select x.parent from above join execution x on x.id = above.id where x.parent is not null
                )
                select from above join execution x on x.id = above.id cross join unnest(x.keys) held
                where split_part(held, ':', 1)::integer = l.id
            )
        ) g
    ) k
    left join lateral (
        select l.fair, held as key from concurrency_limit l cross join unnest(k.keys) held
        where l.id = k.fair_id and split_part(held, ':', 1)::integer = l.id
    ) f on k.fair_id is not null
    where e.id = any (p_ids)
$$;

-- How many more may start under a key: its limit less its holders, and no more than its rate allows.
create type room as (key text, held integer, allowed integer, rated boolean, free integer);

-- The caller holds the keys' locks. Where only the rate stands in the way, a wake row marks the next free instant.
create function key_room(p_keys text[]) returns setof room
language plpgsql
as $$
declare
    r record;
    v_now timestamptz := clock_timestamp();
    v_next timestamptz;
    v_free integer;
begin
    for r in
        select k.key, l.max, l.rate_count, l.rate_seconds,
            case when l.max = 2147483647 then 0 else (select count(*) from slot s where s.key = k.key) end::integer as held
        from unnest(p_keys) k (key) join concurrency_limit l on l.id = split_part(k.key, ':', 1)::integer
    loop
        v_free := greatest(r.max - r.held, 0);
        if r.rate_count is not null and v_free > 0 then
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
        return next (r.key, r.held, r.max, r.rate_count is not null, v_free)::room;
    end loop;
end $$;
