-- Return each key that the candidates need, once, and for each key the number of candidates that need it.
create or replace function count_keys(p_asking candidate[], out keys limit_key[], out counts integer[])
language plpgsql immutable
as $$
begin
    select array_agg((x.limit_id, x.group_value)::limit_key), array_agg(x.n) into keys, counts
    from (select k.limit_id, k.group_value, count(*)::integer as n
          from unnest(p_asking) c cross join unnest(c.keys) k group by 1, 2) x;
end $$;
