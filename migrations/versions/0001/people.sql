-- A user of the API with a password (argon2id). The user's roles (`person_role`) hold for a tenant, or for all (an empty
-- one). A second factor (TOTP) is required since `totp_since`; its secret is sealed in `secret`, and codes of `totp_step` or
-- before are rejected.
create table person (
    id uuid primary key,
    name text not null unique,
    password text not null,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    totp_since timestamptz,
    totp_step bigint not null default 0
);

-- A code that replaces a lost second factor, once. Only its SHA-256 is kept.
create table recovery_code (
    person uuid not null references person (id) on delete cascade,
    digest bytea not null,
    primary key (person, digest)
);

create table person_role (
    person uuid not null references person (id) on delete cascade,
    role text not null,
    tenant text not null default '',
    primary key (person, role, tenant)
);

-- A session of a user. Of the secret in its cookie only the SHA-256 is kept (`digest`). `id` names the session to the user;
-- `address` and `browser` say where it began. A session with `needs_code` grants no access: the password was right, and the
-- code of the second factor is still missing. `id_token`: the identity provider's token, which the provider requires when the
-- user signs out.
create table person_session (
    digest bytea primary key,
    id uuid not null unique default gen_random_uuid(),
    person uuid not null references person (id) on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    address text not null default '',
    browser text not null default '',
    needs_code boolean not null default false,
    id_token text
);
create index person_session_person on person_session (person);

-- An address from which a user has logged in. Failed log-ins with the user's name from other addresses do not lock the user
-- out there.
create table known_address (
    person uuid not null references person (id) on delete cascade,
    address text not null,
    seen_at timestamptz not null default clock_timestamp(),
    primary key (person, address)
);

-- A log-in that failed recently, or is under way. After too many of a name or an address, the next one has to wait.
create table login_failure (
    id uuid primary key,
    at timestamptz not null default clock_timestamp(),
    name text not null,
    address text not null
);
create index login_failure_name on login_failure (name, at);
create index login_failure_address on login_failure (address, at);
