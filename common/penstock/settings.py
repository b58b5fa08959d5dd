"""Every setting, with its default and its unit. Read once, in `main`, from PENSTOCK_* variables, and passed down."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.language.terms import labels as labels_
from penstock.language.terms.outside_names import schema_name
from penstock.language.terms.producers import Producer
from penstock.language.terms.setting_values import (
    LOOPBACK,
    Identifier,
    LogLevel,
    Networks,
    PublicAddress,
    Seconds,
    TraceAddress,
    is_tls_or_local,
    lowered,
    shown_text,
)


class Settings(BaseSettings):
    """Settings of every service. The unit of every duration is the second."""

    model_config = SettingsConfigDict(
        env_prefix="PENSTOCK_", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    database_url: SecretStr | None = None
    """PostgreSQL 14 to 18: `postgresql://user:password@host:5432/database`. Several hosts: `host1:5432,host2:5432`; the one that
    takes writes is used. TLS: `?sslmode=verify-full&sslrootcert=...`. Unset: the embedded server of this folder."""
    database_read_url: SecretStr | None = None
    """A standby, from which the API reads its lists, its overview and its live stream. Unset, or while away: the primary."""
    database_schema: Annotated[Identifier, AfterValidator(schema_name)] = "public"
    """Schema of all tables, spelled as it is here: `Jobs` is not `jobs`. `penstock migrate` creates it, unless it is there."""
    database_pooler: bool = False
    """`true` behind a transaction pooler such as PgBouncer: no session state, named statements or LISTEN. Migrate past it."""
    database_connections: int = Field(default=4, ge=2, le=1000)
    """Connections to PostgreSQL that all parts of a process share, at the most. Beside them it has one for its heartbeat and,
    where PostgreSQL carries the messages, one that listens. An idle process closes what it does not need: 2 or 3 are left.
    Executors and workers have no more than their share of what the server has, and 2 at the least; `penstock doctor` says when
    one more would not fit."""
    broker_url: SecretStr | None = None
    """RabbitMQ 3.10 or later: `amqp://user:password@host:5672/vhost` or `amqps://`; several separated by commas. Unset:
    PostgreSQL carries the messages too."""
    prefix: Identifier = "penstock"
    """What every queue and exchange on the broker begins with, so that installations can share one."""
    declare_topology: bool = True
    """`false` where the user may not configure the broker: queues are checked, not declared."""
    producers: dict[str, Producer] = Field(default_factory=dict)
    """Users of the broker that may publish events, as JSON: `{"shop": {"tenants": ["acme"], "triggers": ["shop.*"]}}`. RabbitMQ
    checks the property `user_id` of their messages. Unset: the header `tenant` of any message is believed. Executors, the API
    and commands have the same."""

    name: Identifier = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """What people call this process, in logs, in the history and in `penstock workers list`. Two may have the same name: what
    they own goes by a random id."""
    runner_id: Identifier | None = None
    """Another word for `PENSTOCK_NAME`, which is Cloacina's. Where both are set, they say the same."""
    runner_name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(shown_text)] | None = None
    """A name of this process for people, of any words: `Production Runner (us-east-1a)`. It is in each line of its log, and
    on its spans."""
    port: int = Field(default=0, ge=0, le=65535)
    """Port of `/live`, `/ready` and `/metrics`. `0`: any free one, which the log says."""
    host: str = "127.0.0.1"
    """Address of `PENSTOCK_PORT`."""
    log_level: Annotated[LogLevel, BeforeValidator(lowered)] = "info"
    """What is logged: lines of this level and of those above it."""
    log_format: Annotated[Literal["json", "console", "auto"], BeforeValidator(lowered)] = "auto"
    """`auto`: `console` on a terminal, else `json`."""
    trace_url: TraceAddress | None = None
    """Where a trace is shown, for links from pages and `penstock show`: `https://tempo.example/trace/{trace_id}`. Traces are
    switched on by OpenTelemetry's own variables."""

    api_host: str = "127.0.0.1"
    """Address of the HTTP API."""
    api_port: int = Field(default=8000, ge=0, le=65535)
    """Port of the HTTP API. `0`: any free one, which the log says. `penstock dev` takes any free one where this is not set and
    8000 is taken."""
    api_address: PublicAddress | None = None
    """How browsers reach the API, such as `https://example.org/penstock`: it is the origin of its pages, and its path stands
    before their addresses. Sessions go over TLS alone where it begins so; without it, everywhere but on a loopback address."""
    trusted_proxies: Networks = ""
    """Addresses and networks of proxies, separated by commas, whose `X-Forwarded-For` names the caller. Unset: none is believed,
    and failed log-ins of all callers behind one proxy count together."""
    api_access: Literal["token", "open"] = "token"
    """`token`: nothing without one. `open`: everything for anybody, on a loopback address alone, which is what `penstock dev`
    does."""

    oidc_issuer: str | None = None
    """The OpenID Connect provider that people sign in with, as it calls itself; an `https` address. Needs `PENSTOCK_API_ADDRESS`
    and the next two."""
    oidc_client_id: str | None = None
    """What the provider knows Penstock by."""
    oidc_client_secret: SecretStr | None = None
    """The secret that goes with it."""
    oidc_scopes: str = "profile email"
    """What is asked of it beside `openid`, separated by spaces."""
    oidc_name_claim: str = "email"
    """The claim that names a user here. An `email` has to be verified (`email_verified`); of others, take none that people choose
    themselves."""
    oidc_roles_claim: str = "groups"
    """The claim, or the path to it (`realm_access.roles`), whose values are mapped."""
    oidc_roles: dict[str, str] = Field(default_factory=dict)
    """Roles by value of that claim, as JSON: `{"ops": "operator", "acme-dev": "viewer, developer:acme"}`. What follows the colon
    is a tenant; without one it is all of them. Who has nothing that is mapped is not let in."""

    secrets_key: SecretStr | None = None
    """Master keys, separated by commas, the newest first: 32 random bytes each, in base64 (`openssl rand -base64 32`)."""
    secrets_key_file: Path | None = None
    """A file that holds them instead, one a line."""
    secrets_kms: str | None = None
    """`module:name` of a key service instead."""

    batch: int = Field(default=500, ge=1, le=5000)
    """Items that a handler takes in one transaction at the most."""
    prefetch_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """Bytes of messages that a consumer of a queue holds at the most, and one message more. A process has a consumer for each of
    its queues; only events from outside and dead letters are larger than some kilobytes."""
    payload_cap: int = Field(default=256 * 1024, ge=1024)
    """Bytes of a payload, of parameters and of a result in the database at the most."""
    result_store: str | None = None
    """Where results go that are larger, as a URL that fsspec takes: `s3://bucket/prefix`, `file:///mnt/results`. Workers and
    clients have the same. Unset: such results are refused. Needs `pip install 'penstock[store]'`."""
    result_store_cap: int = Field(default=256 * 1024 * 1024, ge=1024)
    """Bytes of a result there at the most, and of all stored results that one execution is given."""
    suspend_after: float = Field(default=1.0, ge=0, le=60)
    """Seconds that a durable function stays on its worker while it waits for a step that may end soon. After that, or where its
    slot is needed, it gives its slot back, and goes on later where it was."""
    max_workflow_depth: int = Field(default=20, ge=1, le=1000)
    """How many workflows may run inside one another, the outermost counted. One that would be deeper fails, and says so."""

    concurrency: int = Field(default=32, ge=1, le=10_000)
    """Executions that a worker runs at once. `penstock worker --concurrency`."""
    modules: str = ""
    """What a worker runs: Python modules or files, or folders of YAML packs, separated by commas. `penstock worker --module`."""
    executors: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    """Options of a worker's task executors by name, as JSON: `{"process": {"memory_limit": 1073741824}, "http": null}`. `null`
    leaves one out; one of your own has a `class`. `penstock apply` and workers refuse actions that ask for one that is neither
    built in, nor registered in their modules, nor named here."""
    route_executors: dict[str, str] = Field(default_factory=dict)
    """Which task executor runs what comes by a route and asks for none, as JSON: `{"heavy": "process"}`."""
    known_routes: str = ""
    """All routes there are, separated by commas. `penstock apply` refuses definitions that name another. Unset: any will do."""
    routes: str = "default"
    """Routes that a worker serves, separated by commas. `penstock worker --routes`."""
    labels: str = ""
    """What a worker has that actions may ask for: `gpu=a100,zone=eu`. `penstock worker --labels`."""
    grace: Seconds = 30.0
    """After SIGTERM, how long running work may go on; also how long cancelled work may take to end. A second signal ends at
    once."""

    wait: Seconds | None = None
    """How long an executor or a worker that starts waits for PostgreSQL, its schema and the broker; then it ends with exit code
    3. `--wait 30s`. Unset: until they are there. It says at once what it waits for, and once a minute."""
    heartbeat_interval: Seconds = 10.0
    """How often a process says that it lives."""
    stale_threshold: Seconds = 60.0
    """Without the database for this long, counted from the first heartbeat that does not come through, a process ends its own
    work; two heartbeats after that time its work is given to others. At least 3 x the heartbeat. A process that was killed is
    noticed in 3 to 5 s, whatever this says; not behind a pooler."""
    sweep_interval: Seconds = 30.0
    """How often executors look for slots and attempts that nobody looks after any more (for dead processes each second). Below
    the stale threshold."""
    relay_interval: Seconds = 5.0
    """How often executors look for messages that the broker has not confirmed."""
    relay_age: Seconds = 5.0
    """A staged message that is older was not published by whoever staged it."""
    restage_age: Seconds = 60.0
    """Work that is requested or scheduled for this long without moving is sent again, if no message of it waits."""
    schedule_to_start: Seconds | None = None
    """What no worker has claimed for this long, once it is on its route, ends as `timeout`, unless its action says another time,
    or `null`. Unset: it waits until a worker comes."""
    poll_interval: Seconds = 5.0
    """PostgreSQL transport: how often to look for messages when no wake-up comes."""
    lease: Seconds = 60.0
    """PostgreSQL transport: a delivery that is not settled for this long comes again."""
    queue_type: Literal["quorum", "classic"] = "quorum"
    """Of RabbitMQ's queues. `classic` ones are quicker, but live on one node of the broker and know no delivery limit. Cannot be
    changed for queues that exist."""
    delivery_limit: int = Field(default=20, ge=1)
    """Deliveries of a message after which it is a dead letter. On RabbitMQ it cannot be changed for queues that exist."""

    archive_after: Seconds = 3600.0
    """Seconds after their end at which executions move to the archive, whole trees at a time. Commands read both."""
    archive_retention_days: int = Field(default=90, ge=1)
    """Days that the archive keeps them."""
    history_retention_days: int = Field(default=30, ge=1)
    """Days that the history of moves is kept."""
    event_retention_days: int = Field(default=30, ge=1)
    """Days that events are kept."""
    log_retention_days: int = Field(default=30, ge=1)
    """Days that the output of actions is kept."""
    fire_retention_days: int = Field(default=30, ge=1)
    """Days that the fires of schedules are kept."""
    key_retention_days: int = Field(default=30, ge=1)
    """Days that idempotency keys and message ids are remembered: the same key later is a new request."""
    dead_letter_retention_days: int = Field(default=90, ge=1)
    """Days that a dead letter is kept after it came the last time."""
    private_subscribers: str = ""
    """Hosts (`*.example.org` too), addresses and networks that subscriptions may call though private, separated by commas."""
    export_folder: Path | None = None
    """A folder into which executors write each day of the archive, the history, events, output and fires, and dead letters,
    before they drop them. The same for all executors, on a disk that they share."""
    export_format: Literal["jsonl", "parquet"] = "jsonl"
    """`jsonl`: JSON lines, compressed with gzip. `parquet` needs `pip install 'penstock[parquet]'`."""

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Any) -> Any:
        """Take `runner_id` for `name`."""
        if isinstance(values, dict) and (runner_id := values.get("runner_id")) is not None:
            name = values.setdefault("name", runner_id)
            if name != runner_id:
                raise ValueError(
                    f"runner_id ({runner_id}) and name ({name}) are two words for one thing: set one of them"
                )
        return values

    @field_validator("routes")
    @classmethod
    def _names_a_route(cls, value: str) -> str:
        if not value.replace(",", " ").strip():
            raise ValueError("names no route; leave it out for the route `default`")
        return value

    @field_validator("producers")
    @classmethod
    def _name_users(cls, value: dict[str, Producer]) -> dict[str, Producer]:
        if wrong := next((name for name in value if not name or "/" in name), None):
            raise ValueError(f"{wrong!r} is no name of a user: it is empty, or holds a slash")
        return value

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, value: str) -> str:
        labels_.parse_labels(value)
        return value

    @model_validator(mode="after")
    def _open_to_this_machine_alone(self) -> Self:
        if self.api_access == "open" and self.api_host not in LOOPBACK:
            raise ValueError(
                f"api_access is open, and api_host ({self.api_host}) is no loopback address: anybody who reaches it could "
                "do anything. Leave api_access out, and make tokens with `penstock tokens create`"
            )
        return self

    @model_validator(mode="after")
    def _knows_its_provider(self) -> Self:
        if self.oidc_issuer is not None:
            if not is_tls_or_local(self.oidc_issuer):
                raise ValueError("oidc_issuer should be an https address: what it says is believed")
            for name in ("oidc_client_id", "oidc_client_secret", "api_address"):
                if getattr(self, name) is None:
                    raise ValueError(f"oidc_issuer is set, and {name} is not: the provider asks for it")
        return self

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if self.stale_threshold < 3 * self.heartbeat_interval:
            raise ValueError(
                f"stale_threshold ({self.stale_threshold:g} s) must be at least 3 x heartbeat_interval "
                f"({self.heartbeat_interval:g} s): one lost heartbeat must not cost a worker its work"
            )
        if self.sweep_interval >= self.stale_threshold:
            raise ValueError(
                f"sweep_interval ({self.sweep_interval:g} s) must be below stale_threshold "
                f"({self.stale_threshold:g} s)"
            )
        return self

    @property
    def silent_after(self) -> float:
        """Seconds after the first heartbeat that does not come through at which a process ends its own work: an outage of
        the database that is shorter than `stale_threshold`, and the way back, cost it nothing."""
        return self.stale_threshold + self.heartbeat_interval / 2

    @property
    def lost_after(self) -> float:
        """Seconds after the last heartbeat at which others have the work of a process: the one that did not come through was
        due an interval after it, and it has half an interval to end its work."""
        return self.stale_threshold + 2 * self.heartbeat_interval

    @property
    def silence(self) -> float:
        """Seconds without a heartbeat of any process after which the database or the network was away."""
        return self.stale_threshold / 2

    @property
    def most_connections(self) -> int:
        """Connections to PostgreSQL that a service may have: those that it shares, its heartbeat's, the one that listens."""
        listens = self.broker_url is None and not self.database_pooler
        return self.database_connections + 1 + listens

    @property
    def transport(self) -> str:
        return "rabbitmq" if self.broker_url else "postgres"
