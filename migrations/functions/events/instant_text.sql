-- Return an instant as a text for payloads of events: ISO 8601 in UTC, with microseconds.
create or replace function instant_text(p_at timestamptz) returns text
language sql stable
as $$
    select to_char(p_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
