-- What every end of an execution brings with it, whoever ended it: it is open no more, nothing is due for it, those that
-- belong to no workflow (p_roots) are on their way to the archive, of some (p_told) it is told, and their slots go to the
-- next in line.
create or replace function close_executions(p_ids uuid[], p_roots uuid[], p_told uuid[]) returns setof staged
language plpgsql
as $$
begin
    delete from live where execution_id = any (p_ids);
    perform drop_timers(p_ids);
    if p_roots is not null then
        insert into finished (ids) values (p_roots);
    end if;
    if p_told is not null then
        return query select * from tell_ends(p_told);
    end if;
    return query select * from release(p_ids);
end $$;
