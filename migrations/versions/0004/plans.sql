-- Functions that choose how they are planned make PostgreSQL take their statements for very dear, and so compile them, which
-- takes a hundred times as long as to run them. Sessions of ours say `jit = off`; those behind a pooler cannot.
do $$
declare
    v_function regprocedure;
begin
    for v_function in
        select p.oid from pg_proc p
        where p.pronamespace = current_schema()::regnamespace
            and exists (select from unnest(p.proconfig) c where c like 'enable\_%')
    loop
        execute format('alter function %s set jit = off', v_function);
    end loop;
end $$;
