-- Return a new UUIDv7 (RFC 9562) by the database's clock: 48 bits of milliseconds, then random bits.
create or replace function new_id() returns uuid
language sql volatile
as $$
    select encode(set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
            placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
        52, 1), 53, 1), 'hex')::uuid
$$;
