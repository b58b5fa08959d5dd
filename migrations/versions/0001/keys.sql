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
    -- Most lanes need one key: nothing is looked at where no lane needs another one.
    if not exists (select from unnest(p_keys) g where g like 'worker:%' or exists (
            select from lane l where l.gate = g and cardinality(l.keys) > 1)) then
        return p_keys;
    end if;
    return array(
        select k from unnest(p_keys) k
        union
        select k from unnest(p_keys) g
        cross join lateral (
            select keys from lane l where l.gate = g order by l.rank, l.place, l.ready_at, l.execution_id limit 50) l
        cross join unnest(l.keys) k where cardinality(l.keys) > 1 or g like 'worker:%'
    );
end $$;

-- What an execution that is ready to start needs. `rank` is minus its priority. `keys` are those of its limits, null
-- where it has none; `away`: no live worker runs it. In line, those of the same `lane` wait together; `fair` is the key
-- between whose groups turns are taken, `fair_group` the group.
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

-- The keys of an execution whose namespace has several limits, or that is a workflow inside another one. A workflow that
-- runs inside another one needs no slot of a limit that the other one holds a slot of: it would wait for its own parent.
create function several_keys(p_id uuid, p_limits integer[], p_inside uuid) returns text[]
language sql stable
as $$
    select array_agg(k.key order by k.key)
    from (
        select l.id || ':' || case when l.by = '{}' then ''
            else group_of(l.by, (select p.params from payload p where p.execution_id = p_id)) end as key
        from concurrency_limit l
        where l.id = any (p_limits) and (p_inside is null or not exists (
            with recursive above as (
                select p_inside as id
                union all
                select x.parent from above join execution x on x.id = above.id where x.parent is not null
            )
            select from above join execution x on x.id = above.id cross join unnest(x.keys) held
            where split_part(held, ':', 1)::integer = l.id))
    ) k
$$;

-- A key is a limit's id and, where the limit is grouped, the values of its parameters. Most need one.
create function wanted_keys(p_ids uuid[]) returns setof wanted
language sql stable
as $$
    select e.id, e.namespace_id, n.queue, n.envelope, n.away_since is not null, e.attempt, (-e.priority)::smallint,
        e.ready_at, k.keys, null, null, null
    from execution e
    join namespace n on n.id = e.namespace_id
    left join concurrency_limit o on o.id = n.limits[1] and cardinality(n.limits) = 1
        and (e.parent is null or n.queue like 'work.%')
    cross join lateral (
        select case
            when o.by = '{}' then array[o.id || ':']
            when o.id is not null
                then array[o.id || ':' || group_of(o.by, (select p.params from payload p where p.execution_id = e.id))]
            else several_keys(e.id, n.limits, case when n.queue not like 'work.%' then e.parent end) end as keys
        offset 0
    ) k
    where e.id = any (p_ids)
$$;

-- The lines in which these wait.
create function in_line(p_wanted wanted[]) returns wanted[]
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
as $$
begin
    return array(
        select (w.id, w.namespace_id, w.queue, w.envelope, w.away, w.attempt, w.rank, w.ready_at, w.keys,
            w.namespace_id || '|' || coalesce(f.fair::text, '') || '|' || array_to_string(w.keys, '|'), f.key,
            case when f.key is not null
                then f.key || group_of(f.fair, (select p.params from payload p where p.execution_id = w.id)) end)::wanted
        from unnest(p_wanted) w
        left join lateral (
            select l.fair, k as key from unnest(w.keys) k
            join concurrency_limit l on l.id = split_part(k, ':', 1)::integer and l.fair <> '{}'
            order by l.id limit 1
        ) f on true);
end $$;

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
