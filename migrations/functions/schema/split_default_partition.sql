-- Make the partition `p_name` of `p_parent` for the range from `p_from` to `p_to`, and move its rows there from the default
-- partition. The bounds are ISO texts with an offset. The default partition is locked first: a row of the range that came between the
-- move and the end of this transaction would make it fail.
create or replace function split_default_partition(p_parent text, p_name text, p_from text, p_to text) returns void
language plpgsql
as $$
declare
    v_key name;
begin
    select a.attname into v_key
    from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
    where p.partrelid = p_parent::regclass;
    execute format('create table %I (like %I including all)', p_name, p_parent);
    execute format('lock table %I in access exclusive mode', p_parent || '_default');
    execute format('with moved as (delete from %I where %I >= %L and %I < %L returning *) insert into %I select * from moved',
        p_parent || '_default', v_key, p_from, v_key, p_to, p_name);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', p_parent, p_name, p_from, p_to);
end $$;
