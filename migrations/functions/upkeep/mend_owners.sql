-- Repair invariant I2: recover a running execution that has no worker, as after the loss of a worker. Remove the worker from an
-- execution that does not run.
create or replace function mend_owners(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_nobody constant uuid := '00000000-0000-0000-0000-000000000000';
    v_lost uuid[];
begin
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
    update execution set claim = null
    where id = any (p_ids) and claim is not null and status not in ('running', 'canceling') and finished_at is null;
    with lost as (
        update execution e set claim = v_nobody from namespace n
        where e.id = any (p_ids) and e.claim is null and e.status in ('running', 'canceling')
            and n.id = e.namespace_id and n.kind = 'action'
        returning e.id
    )
    select array_agg(id) into v_lost from lost;
    return (recover_executions(v_nobody, v_lost, 'it ran for nobody (penstock repair)')).messages;
end $$;
