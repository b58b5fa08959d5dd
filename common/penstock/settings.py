"""The settings, each with its default and its unit. `main` reads them once from PENSTOCK_* variables, and passes them
down."""

from __future__ import annotations

import os
import re
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
from penstock.language.terms import run_labels
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

MAX_METRIC_LABELS = 5
"""The maximum number of labels by which executions are counted."""


def _words(value: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in value.split(","))))


class Settings(BaseSettings):
    """The settings of all services. The unit of every duration is the second."""

    model_config = SettingsConfigDict(
        env_prefix="PENSTOCK_", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    database_url: SecretStr | None = None
    """PostgreSQL 14 to 18: `postgresql://user:password@host:5432/database`. Several hosts: `host1:5432,host2:5432`;
    the primary among them is used. TLS: `?sslmode=verify-full&sslrootcert=...`. Unset: the embedded server of this
    folder."""
    database_read_url: SecretStr | None = None
    """A standby, from which the API reads its lists, its overview and its live stream. Unset or unavailable: the
    primary."""
    database_schema: Annotated[Identifier, AfterValidator(schema_name)] = "public"
    """The schema of all tables, case-sensitive: `Jobs` is not `jobs`. `penstock migrate` creates it, unless it exists.
    """
    database_pooler: bool = False
    """Set `true` behind a transaction pooler such as PgBouncer: no session state, named statements or LISTEN are used.
    Migrate without the pooler."""
    database_connections: int = Field(default=4, ge=2, le=1000)
    """The maximum number of connections to PostgreSQL that all parts of a process share. The process has one more for
    its heartbeat, and one more to listen if PostgreSQL carries the messages. An idle process closes those that it does
    not need: 2 or 3 are left. Executors and workers take at most their share of the server's connections, and at least
    2. `penstock doctor` reports when one more would not fit."""
    broker_url: SecretStr | None = None
    """RabbitMQ 3.10 or later: `amqp://user:password@host:5672/vhost` or `amqps://`; several separated by commas. Unset:
    PostgreSQL carries the messages too."""
    prefix: Identifier = "penstock"
    """The prefix of every queue and exchange on the broker, so that installations can share one."""
    declare_topology: bool = True
    """Set `false` if the user has no right to configure the broker: queues are checked instead of declared."""
    producers: dict[str, Producer] = Field(default_factory=dict)
    """Users of the broker that may publish events, as JSON: `{"shop": {"tenants": ["acme"], "triggers": ["shop.*"]}}`.
    RabbitMQ verifies the property `user_id` of their messages. Unset: the header `tenant` of any message is trusted.
    The setting must be the same for executors, the API and commands."""

    name: Identifier = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """The name of this process for people, in logs, in the history and in `penstock workers list`. Two processes may
    have the same name: their work is identified by a random id."""
    runner_id: Identifier | None = None
    """Another name for `PENSTOCK_NAME`, from Cloacina. If both are set, they must be equal."""
    runner_name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(shown_text)] | None = None
    """A descriptive name of this process, in any words: `Production Runner (us-east-1a)`. It is in each line of its
    log, and on its spans."""
    port: int = Field(default=0, ge=0, le=65535)
    """The port of `/live`, `/ready` and `/metrics`. `0`: any free one, which is logged."""
    host: str = "127.0.0.1"
    """The address at which `PENSTOCK_PORT` listens."""
    log_level: Annotated[LogLevel, BeforeValidator(lowered)] = "info"
    """The lowest level of log lines that are written."""
    log_format: Annotated[Literal["json", "console", "auto"], BeforeValidator(lowered)] = "auto"
    """The format of log lines. `auto`: `console` on a terminal, else `json`."""
    trace_url: TraceAddress | None = None
    """The address of a trace, for links from pages and `penstock show`: `https://tempo.example/trace/{trace_id}`.
    OpenTelemetry's own variables switch traces on."""

    api_host: str = "127.0.0.1"
    """The address at which the HTTP API listens."""
    api_port: int = Field(default=8000, ge=0, le=65535)
    """The port of the HTTP API. `0`: any free one, which is logged. If it is not set and 8000 is taken, `penstock dev`
    takes any free one."""
    api_address: PublicAddress | None = None
    """The address of the API for browsers, such as `https://example.org/penstock`. The address is the origin of the
    pages of the API, and its path precedes their addresses. With `https` session cookies are sent over TLS only. Unset:
    the same, except on a loopback address. Workers give it to callbacks and programs. The worker of `penstock dev`
    takes that of its own API if it is unset."""
    trusted_proxies: Networks = ""
    """Addresses and networks of proxies, separated by commas, whose `X-Forwarded-For` names the caller. Unset: the
    header is ignored, and failed sign-ins of all callers behind one proxy count together."""
    api_access: Literal["token", "open"] = "token"
    """Access to the API. `token`: every request needs one. `open`: every request is permitted, on a loopback address
    only, as with `penstock dev`."""

    oidc_issuer: str | None = None
    """The issuer of the OpenID Connect provider with which people sign in, an `https` address. Needs
    `PENSTOCK_API_ADDRESS` and the next two."""
    oidc_client_id: str | None = None
    """The client id that the provider gave to Penstock."""
    oidc_client_secret: SecretStr | None = None
    """The client secret that belongs to the client id."""
    oidc_scopes: str = "profile email"
    """The scopes to request besides `openid`, separated by spaces."""
    oidc_name_claim: str = "email"
    """The claim with the name of a user. An `email` has to be verified (`email_verified`). Do not use a claim that
    users can set themselves."""
    oidc_roles_claim: str = "groups"
    """The claim, or the path to it (`realm_access.roles`), whose values are mapped to roles."""
    oidc_roles: dict[str, str] = Field(default_factory=dict)
    """Roles by value of that claim, as JSON: `{"ops": "operator", "acme-dev": "viewer, developer:acme"}`. After the
    colon is a tenant; without one the role holds for all tenants. A user without a mapped value is refused."""

    secrets_key: SecretStr | None = None
    """Master keys of the secret store, separated by commas, newest first: 32 random bytes each, in base64 (`openssl
    rand -base64 32`)."""
    secrets_key_file: Path | None = None
    """A file with the master keys instead, one a line."""
    secrets_kms: str | None = None
    """A key service as `module:name` instead of master keys."""

    batch: int = Field(default=500, ge=1, le=5000)
    """The maximum number of items that a handler takes in one transaction."""
    prefetch_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """The maximum size in bytes of the messages that a consumer of a queue holds, plus one message. A process has a
    consumer for each of its queues. Only events from outside and dead letters are larger than some kilobytes."""
    payload_cap: int = Field(default=256 * 1024, ge=1024)
    """The maximum size in bytes of a payload, of parameters, and of a result in the database."""
    result_store: str | None = None
    """The store of larger results, as a URL that fsspec takes: `s3://bucket/prefix`, `file:///mnt/results`. The store
    must be the same for workers and clients. Unset: such results are refused. Needs the extra `store`."""
    result_store_cap: int = Field(default=256 * 1024 * 1024, ge=1024)
    """The maximum size in bytes of a result in the result store, and of all stored results that one execution reads."""
    suspend_after: float = Field(default=1.0, ge=0, le=60)
    """The seconds for which a durable function stays on its worker while it waits for a step that may end soon. After
    that, or if its slot is needed, it releases the slot, and resumes later where it was."""
    max_workflow_depth: int = Field(default=20, ge=1, le=1000)
    """The maximum nesting depth of workflows, including the outermost. A deeper one fails with an error that says so.
    """

    concurrency: int = Field(default=32, ge=1, le=10_000)
    """The number of executions that a worker runs at once. A batch counts as one. `penstock worker --concurrency`."""
    modules: str = ""
    """The definitions of a worker: Python modules or files, or folders of YAML packs, separated by commas. `penstock
    worker --module`."""
    executors: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    """Options of a worker's task executors by name, as JSON: `{"process": {"memory_limit": 1073741824}, "http":
    null}`. `null` disables one, and one of your own has a `class`. `penstock apply` and workers refuse actions that
    ask for an executor that is neither built in, nor registered in their modules, nor named here."""
    route_executors: dict[str, str] = Field(default_factory=dict)
    """The task executor for actions that ask for none, by route, as JSON: `{"heavy": "process"}`."""
    known_routes: str = ""
    """The routes that exist, separated by commas. `penstock apply` refuses definitions that name another. Unset: every
    route is accepted."""
    routes: str = "default"
    """The routes that a worker serves, separated by commas. `penstock worker --routes`."""
    labels: str = ""
    """The labels that a worker carries and actions may require: `gpu=a100,zone=eu`. `penstock worker --labels`."""
    metric_labels: str = ""
    """The labels of executions, at most 5, by which `/metrics` counts ended executions: `customer,region`. Each has the figures
    of its first 100 values, and the rest is `other`. Set it for all executors alike."""
    grace: Seconds = 30.0
    """The seconds that running work may go on after SIGTERM, and that cancelled work may take to end. A second signal
    ends at once."""

    wait: Seconds | None = None
    """The seconds for which a starting executor or worker waits for PostgreSQL, its schema and the broker. After that
    it ends with exit code 3. `--wait 30s`. Unset: it waits without end. It logs what it waits for at once, and then
    each minute."""
    heartbeat_interval: Seconds = 10.0
    """The interval of a process's heartbeats."""
    stale_threshold: Seconds = 60.0
    """The time without the database, from the first missed heartbeat, after which a process ends its own work. Two
    heartbeats later its work is given to others. At least 3 x the heartbeat. A killed process is noticed in 3 to 5 s
    regardless, but not behind a pooler."""
    sweep_interval: Seconds = 30.0
    """The interval at which executors look for slots and attempts that no process owns any more. For dead processes it
    is a second. Must be below the stale threshold."""
    relay_interval: Seconds = 5.0
    """The interval at which executors look for messages that the broker has not confirmed."""
    relay_age: Seconds = 5.0
    """The age after which a staged message counts as not published by the process that staged it."""
    restage_age: Seconds = 60.0
    """The time after which work that is requested or scheduled without moving is sent again, if no message of it
    waits."""
    schedule_to_start: Seconds | None = None
    """The time from reaching its route after which unclaimed work ends as `timeout`. An action can set another time,
    or `null`. Unset: it waits until a worker comes."""
    stuck_after: Seconds = 300.0
    """The time for which work waits without a worker that could run it, after which it is stuck: rules of
    `penstock.execution.stuck` are notified, once a run."""
    poll_interval: Seconds = 5.0
    """The interval at which the PostgreSQL transport looks for messages without a notification."""
    lease: Seconds = 60.0
    """The time after which the PostgreSQL transport delivers a message again that was not settled."""
    queue_type: Literal["quorum", "classic"] = "quorum"
    """The type of RabbitMQ's queues. `classic` ones are quicker, but live on one node of the broker and have no
    delivery limit. It cannot be changed for existing queues."""
    delivery_limit: int = Field(default=20, ge=1)
    """The number of deliveries after which a message becomes a dead letter. On RabbitMQ it cannot be changed for
    existing queues."""

    archive_after: Seconds = 3600.0
    """The time after their end at which executions move to the archive, whole trees at a time. Commands read both."""
    archive_retention_days: int = Field(default=90, ge=1)
    """The days for which the archive keeps executions."""
    history_retention_days: int = Field(default=30, ge=1)
    """The days for which the history of moves is kept."""
    event_retention_days: int = Field(default=30, ge=1)
    """The days for which events are kept."""
    log_retention_days: int = Field(default=30, ge=1)
    """The days for which the output of actions is kept."""
    fire_retention_days: int = Field(default=30, ge=1)
    """The days for which the fires of schedules are kept."""
    key_retention_days: int = Field(default=30, ge=1)
    """The days for which idempotency keys and message ids are kept. Later the same key is a new request, unless its
    execution is not archived yet."""
    dead_letter_retention_days: int = Field(default=90, ge=1)
    """The days for which a dead letter is kept after its last arrival."""
    private_subscribers: str = ""
    """Private hosts (`*.example.org` too), addresses and networks that subscriptions may call, separated by commas."""
    export_folder: Path | None = None
    """A folder into which executors export each day of the archive, the history, events, output, fires and dead
    letters, before they drop them. The folder must be the same for all executors, on a disk that they share."""
    export_format: Literal["jsonl", "parquet"] = "jsonl"
    """The format of exports. `jsonl`: JSON lines, compressed with gzip. `parquet` needs the extra
    `parquet`."""

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Any) -> Any:
        """Copy `runner_id` to `name`."""
        if isinstance(values, dict) and (runner_id := values.get("runner_id")) is not None:
            name = values.setdefault("name", runner_id)
            if name != runner_id:
                raise ValueError(
                    f"runner_id ({runner_id}) and name ({name}) are the same setting: set only one of them"
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
            raise ValueError(f"{wrong!r} is not a valid name of a user: it is empty, or holds a slash")
        return value

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, value: str) -> str:
        labels_.parse_labels(value)
        return value

    @field_validator("metric_labels")
    @classmethod
    def _are_keys_of_labels(cls, value: str) -> str:
        keys = _words(value)
        if wrong := next((key for key in keys if not re.fullmatch(run_labels.KEY, key)), None):
            raise ValueError(
                f"{wrong!r} is not the key of a label: write lowercase words such as customer,region"
            )
        if len(keys) > MAX_METRIC_LABELS or len(set(keys)) < len(keys):
            raise ValueError(f"names more than {MAX_METRIC_LABELS} labels, or one twice")
        return value

    @model_validator(mode="after")
    def _open_to_this_machine_alone(self) -> Self:
        if self.api_access == "open" and self.api_host not in LOOPBACK:
            raise ValueError(
                f"api_access is open, but api_host ({self.api_host}) is not a loopback address: every "
                "program that can reach the API would have all rights. Unset api_access, and create "
                "tokens with `penstock tokens create`"
            )
        return self

    @model_validator(mode="after")
    def _knows_its_provider(self) -> Self:
        if self.oidc_issuer is not None:
            if not is_tls_or_local(self.oidc_issuer):
                raise ValueError("oidc_issuer must be an https address, since Penstock trusts its answers")
            for name in ("oidc_client_id", "oidc_client_secret", "api_address"):
                if getattr(self, name) is None:
                    raise ValueError(f"oidc_issuer is set, but {name} is not: the provider requires it")
        return self

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if self.stale_threshold < 3 * self.heartbeat_interval:
            raise ValueError(
                f"stale_threshold ({self.stale_threshold:g} s) must be at least 3 x heartbeat_interval "
                f"({self.heartbeat_interval:g} s): a single missing heartbeat must not count as the loss "
                "of a worker"
            )
        if self.sweep_interval >= self.stale_threshold:
            raise ValueError(
                f"sweep_interval ({self.sweep_interval:g} s) must be below stale_threshold "
                f"({self.stale_threshold:g} s)"
            )
        return self

    @property
    def metric_label_keys(self) -> tuple[str, ...]:
        """Return the keys in `metric_labels`."""
        return _words(self.metric_labels)

    @property
    def silent_after(self) -> float:
        """Return the seconds from the first missed heartbeat after which a process ends its own work. An outage of the
        database shorter than `stale_threshold` costs it nothing, including the time to reconnect."""
        return self.stale_threshold + self.heartbeat_interval / 2

    @property
    def lost_after(self) -> float:
        """Return the seconds from the last heartbeat after which others get the work of a process. The first missed
        heartbeat was due after one interval, and the process has half an interval to end its work."""
        return self.stale_threshold + 2 * self.heartbeat_interval

    @property
    def silence(self) -> float:
        """Return the seconds after which missing heartbeats of all processes show that the database or the network was away."""
        return self.stale_threshold / 2

    @property
    def most_connections(self) -> int:
        """Return the number of connections to PostgreSQL that a service may have: the shared ones, the heartbeat's,
        and the listening one."""
        listens = self.broker_url is None and not self.database_pooler
        return self.database_connections + 1 + listens

    @property
    def transport(self) -> str:
        return "rabbitmq" if self.broker_url else "postgres"
