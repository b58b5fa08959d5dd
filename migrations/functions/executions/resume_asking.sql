-- Resume an execution that asked a question in order to go on: waiting -> requested. The next attempt gets the state that this
-- attempt left, and all answers so far. `moved` is empty if another transaction moved the execution first.
-- planner: lookups
create or replace function resume_asking(
    p_execution uuid, p_response jsonb, p_reason text, out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_attempt integer;
    v_keys limit_key[];
    v_started uuid[] := '{}';
begin
    messages := '{}';
    moved := '{}';
    update execution set status = 'requested', ready_at = clock_timestamp(), since = null, not_before = null,
        reason = case when ends_as is null then p_reason else reason end
    where id = p_execution and status = 'waiting'
    returning attempt, keys into v_attempt, v_keys;
    if not found then
        return;
    end if;
    moved := array[p_execution];
    update attempt set error = jsonb_build_object('carry', c.carry || jsonb_build_object(
        'answers', coalesce(c.carry -> 'answers', '[]') || jsonb_build_array(p_response)))
    from (select error -> 'carry' -> 'resume' as carry from attempt where execution_id = p_execution and attempt = v_attempt) c
    where execution_id = p_execution and attempt = v_attempt;
    if v_keys is not null then
        select s.messages, s.started into messages, v_started from start_kept(moved) s;
    end if;
    if v_started = '{}' then
        messages := settle_moves(null, moved, case when v_keys is not null then held_by(moved) end);
    end if;
end $$;
