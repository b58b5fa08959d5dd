"""The texts of docs/configuration.md beside the docstrings of the settings."""

from __future__ import annotations

HEAD = """# Configuration

This page is written by `docs/written` from `common/penstock/settings.py`. Everything is set by environment variables. Each process reads
them once, when it starts, and refuses what it does not know: a misspelt `PENSTOCK_...` is an error that names it, not a default. One that
is empty is as good as unset. Without any, `penstock dev` runs all of Penstock on an embedded PostgreSQL in the
folder `.penstock`.

Durations are seconds, and may have a fraction. Set the same values for all executors and workers of an installation, save those under
*This process* and *Worker*.

"""
SECTIONS = {
    "Servers": (
        *("database_url", "database_read_url", "database_schema", "database_pooler"),
        *("database_connections", "broker_url", "prefix", "queue_type", "declare_topology"),
        "producers",
    ),
    "This process": (
        "name",
        "runner_id",
        "runner_name",
        "port",
        "host",
        "log_level",
        "log_format",
        "trace_url",
    ),
    "Metrics": ("metric_labels",),
    "API": (
        *("api_host", "api_port", "api_address", "trusted_proxies", "api_access"),
        *("oidc_issuer", "oidc_client_id", "oidc_client_secret", "oidc_scopes"),
        *("oidc_name_claim", "oidc_roles_claim", "oidc_roles"),
    ),
    "Secrets": ("secrets_key", "secrets_key_file", "secrets_kms"),
    "Worker": (
        *("modules", "known_routes", "routes", "labels", "concurrency"),
        *("executors", "route_executors", "grace"),
    ),
    "Sizes": (
        *("batch", "prefetch_bytes", "payload_cap", "result_store", "result_store_cap"),
        *("suspend_after", "max_workflow_depth"),
    ),
    "Recovery": (
        *("wait", "heartbeat_interval", "stale_threshold", "sweep_interval", "restage_age"),
        *(
            "schedule_to_start",
            "stuck_after",
            "relay_interval",
            "relay_age",
            "delivery_limit",
            "poll_interval",
            "lease",
        ),
    ),
    "Retention": (
        *("archive_after", "archive_retention_days", "history_retention_days", "event_retention_days"),
        *("log_retention_days", "fire_retention_days", "key_retention_days"),
        *("dead_letter_retention_days", "export_folder", "export_format"),
    ),
    "Subscriptions": ("private_subscribers",),
}
"""Settings by the heading that they stand under."""
SAID = {
    "Secrets": "One of these, for workers, the API and the command line alike, where there are [secrets](secrets.md):"
}
"""What is said of all that stand under a heading."""

SEE = {
    "database_url": "[clusters](how-to/clusters.md)",
    "database_read_url": "[reading from a standby](how-to/clusters.md#read-from-a-standby)",
    "broker_url": "[transports](transports.md)",
    "producers": "[who may publish](wire-format.md#who-may-publish)",
    "log_format": "[what lines hold](reference/logs.md)",
    "trace_url": "[traces](how-to/tracing.md)",
    "api_host": "[HTTP API](api.md)",
    "api_address": "[behind a proxy](api.md#behind-a-proxy)",
    "trusted_proxies": "[behind a proxy](api.md#behind-a-proxy)",
    "api_access": "[access](api.md#access)",
    "oidc_issuer": "[single sign-on](how-to/single-sign-on.md)",
    "secrets_kms": "[how they are kept](secrets.md#how-they-are-kept)",
    "result_store": "[large results](how-to/large-results.md)",
    "suspend_after": "[durable functions](durable.md)",
    "executors": "[task executors](task-executors.md)",
    "labels": "[workers](workers.md)",
    "metric_labels": "[metrics by label](metrics.md#by-label)",
    "schedule_to_start": "[times](timeouts.md)",
    "stuck_after": "[alerts from events](how-to/alerts-from-events.md)",
    "export_folder": "[recovery](recovery.md)",
    "private_subscribers": "[subscriptions](subscriptions.md)",
}
"""Where more is said."""

FOOT = """## The command line

These are read by commands alone:

| variable | what it is |
|---|---|
| `PENSTOCK_SERVER` | The [API that commands ask](api.md#the-command-line-and-python-over-http) instead of the database: `penstock --server`. |
| `PENSTOCK_TOKEN` | The token that goes with it. |
| `PENSTOCK_PROFILE` | Server and token by a name in `~/.config/penstock/profiles.toml`: `penstock --profile`. |
| `PENSTOCK_PLAIN_HTTP` | `1`: a server without TLS may be on another machine. |

## Not settings

| variable | what it is |
|---|---|
| `PENSTOCK_HOME` | The folder of the embedded server: of `penstock dev` and `demo`, and for commands and clients that join it; by default `.penstock` below the current folder. |
| `PENSTOCK_TEST_DATABASE_URL`, `PENSTOCK_TEST_BROKER_URL` | Servers for `make test`, in place of private ones. |
| `PENSTOCK_TEST_POSTGRES_BIN`, `PENSTOCK_TEST_RABBITMQ_SCRIPT` | A `bin` folder of PostgreSQL and a `rabbitmq-server` for `make test` to start its private servers from, to try another version. Any other `PENSTOCK_TEST_...` is left alone too. |

A program that an action runs finds these in its environment, see [task executors](task-executors.md):
`PENSTOCK_ACTION`, `PENSTOCK_ATTEMPT`, `PENSTOCK_ATTEMPT_TOKEN`, `PENSTOCK_CONTEXT`, `PENSTOCK_EXECUTION_ID`,
`PENSTOCK_IDEMPOTENCY_TOKEN`, `PENSTOCK_MAX_ATTEMPTS`, `PENSTOCK_NAMESPACE`, `PENSTOCK_PARAMS`, `PENSTOCK_ROOT_ID`,
`PENSTOCK_TASK`, `PENSTOCK_TIMEOUT`, `PENSTOCK_WORKFLOW_ID`.

What concerns one action (retries, timeouts, limits, route) is declared with it, not here.
`penstock doctor` checks what these settings lead to, and says what to do.
"""
