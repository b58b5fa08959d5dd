-- Grant the rights on a table to one of its partitions, too, since the executor reads and empties partitions by their own names.
create or replace function copy_rights(p_table text, p_partition text) returns void
language plpgsql
as $$
declare
    v_right record;
begin
    for v_right in
        select pg_get_userbyid(r.grantee) as role, string_agg(r.privilege_type, ', ') as rights
        from pg_class c, aclexplode(c.relacl) r
        where c.oid = p_table::regclass and r.grantee not in (0, c.relowner) group by r.grantee
    loop
        execute format('grant %s on %I to %I', v_right.rights, p_partition, v_right.role);
    end loop;
end $$;
