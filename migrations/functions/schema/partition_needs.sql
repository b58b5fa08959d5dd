-- Count the rows of a daily partition that stored work still needs, by the table that refers to them (needed_rows). There is no row if
-- the partition can be dropped. The function has the owner's rights, since it reads tables that the caller may not read.
create or replace function partition_needs(p_name text) returns table (needed_by text, rows bigint)
language plpgsql stable security definer
as $$
declare
    v_table text := left(p_name, -9);
    v_from timestamptz := to_date(right(p_name, 8), 'YYYYMMDD')::timestamp at time zone 'utc';
begin
    if to_regclass(quote_ident(p_name)) is null or v_table not in ('event', 'archive', 'archived_label', 'fire') then
        return;
    end if;
    return query execute format(
        'select n.needed_by, count(distinct n.id) from needed_rows($1, $2, $3) n join %I t on t.%I = n.id group by 1 order by 1',
        p_name, case v_table when 'fire' then 'execution_id' else 'id' end)
        using v_table, v_from, v_from + interval '1 day';
exception when undefined_table then -- another replica has dropped it meanwhile
end $$;
