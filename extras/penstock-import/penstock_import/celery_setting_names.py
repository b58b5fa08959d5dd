"""The settings of Celery by their present names. Their old names are in capitals, with a prefix."""

from __future__ import annotations

_TASKS = (
    "acks_late acks_on_failure acks_on_failure_or_timeout acks_on_timeout allow_error_cb_on_chord_header "
    "always_eager annotations compression "
    "create_missing_queues default_delivery_mode default_exchange default_exchange_type default_priority default_queue "
    "default_queue_type default_rate_limit default_routing_key eager_propagates ignore_result inherit_parent_priority "
    "protocol publish_retry publish_retry_policy queue_ha_policy queue_max_priority queues reject_on_worker_lost "
    "remote_tracebacks retry_on_worker_lost routes send_sent_event serializer soft_time_limit store_eager_result "
    "store_errors_even_if_ignored time_limit track_started"
)
_PREFIXES = (
    "beat_", "broker_", "cache_", "control_", "couchbase_", "database_", "elasticsearch_", "event_", "mongodb_", "redis_",
    "result_", "s3_", "security_", "task_", "worker_", "arangodb_", "azureblockblob_", "cassandra_", "cosmosdbsql_",
    "couchdb_", "dynamodb_", "filesystem_", "gcs_", "riak_", "sqlalchemy_",
)  # fmt: skip
_PLAIN = frozenset(
    {
        "accept_content",
        "enable_utc",
        "imports",
        "include",
        "timezone",
        "deprecated_settings",
        "events_logfile",
    }
)
TASK_SETTINGS = frozenset(f"task_{name}" for name in _TASKS.split())
_OLD = ("CELERY_", "CELERYD_", "CELERYBEAT_", "BROKER_")
_OF_CELERY = (
    "accept_content arangodb_backend_settings azureblockblob_base_path azureblockblob_connection_timeout "
    "azureblockblob_container_name azureblockblob_read_timeout azureblockblob_retry_increment_base "
    "azureblockblob_retry_initial_backoff_sec azureblockblob_retry_max_attempts beat_cron_starting_deadline "
    "beat_max_loop_interval beat_schedule beat_schedule_filename beat_scheduler beat_sync_every "
    "broker_channel_error_retry broker_connection_max_retries broker_connection_retry "
    "broker_connection_retry_on_startup broker_connection_timeout broker_failover_strategy broker_heartbeat "
    "broker_heartbeat_checkrate broker_host broker_login_method broker_native_delayed_delivery_queue_type "
    "broker_password broker_pool_limit broker_port broker_read_url broker_transport broker_transport_options "
    "broker_url broker_use_ssl broker_user broker_vhost broker_write_url cache_backend cache_backend_options "
    "cassandra_auth_kwargs cassandra_auth_provider cassandra_bundle_path cassandra_entry_ttl cassandra_keyspace "
    "cassandra_options cassandra_port cassandra_read_consistency cassandra_servers cassandra_table "
    "cassandra_write_consistency control_exchange control_queue_durable control_queue_exclusive "
    "control_queue_expires control_queue_ttl cosmosdbsql_collection_name cosmosdbsql_consistency_level "
    "cosmosdbsql_database_name cosmosdbsql_max_retry_attempts cosmosdbsql_max_retry_wait_time "
    "couchbase_backend_settings database_create_tables_at_setup database_engine_options "
    "database_short_lived_sessions database_table_names database_table_schemas database_url "
    "elasticsearch_max_retries elasticsearch_retry_on_timeout elasticsearch_save_meta_as_text elasticsearch_timeout "
    "enable_utc event_exchange event_queue_durable event_queue_exclusive event_queue_expires event_queue_prefix "
    "event_queue_ttl event_serializer gcs_base_path gcs_bucket gcs_project gcs_ttl imports include "
    "mongodb_backend_settings redis_backend_use_ssl redis_db redis_host redis_max_connections redis_password "
    "redis_port redis_retry_on_timeout redis_socket_connect_timeout redis_socket_keepalive redis_socket_timeout "
    "redis_username result_accept_content result_backend result_backend_always_retry "
    "result_backend_base_sleep_between_retries_ms result_backend_max_retries "
    "result_backend_max_sleep_between_retries_ms result_backend_transport_options result_cache_max "
    "result_chord_join_timeout result_chord_retry_interval result_compression result_exchange result_exchange_type "
    "result_expires result_extended result_persistent result_serializer s3_access_key_id s3_base_path s3_bucket "
    "s3_endpoint_url s3_region s3_secret_access_key security_cert_store security_certificate security_digest "
    "security_key security_key_password task_acks_late task_acks_on_failure_or_timeout "
    "task_allow_error_cb_on_chord_header task_always_eager task_annotations task_compression "
    "task_create_missing_queue_exchange_type task_create_missing_queue_type task_create_missing_queues "
    "task_default_delivery_mode task_default_exchange task_default_exchange_type task_default_priority "
    "task_default_queue task_default_queue_type task_default_rate_limit task_default_routing_key "
    "task_eager_propagates task_ignore_result task_inherit_parent_priority task_protocol task_publish_retry "
    "task_publish_retry_policy task_queue_max_priority task_queues task_reject_on_worker_lost "
    "task_remote_tracebacks task_routes task_send_sent_event task_serializer task_soft_time_limit "
    "task_store_eager_result task_store_errors_even_if_ignored task_time_limit task_track_started timezone "
    "worker_agent worker_autoscaler worker_cancel_long_running_tasks_on_connection_loss worker_concurrency "
    "worker_consumer worker_deduplicate_successful_tasks worker_detect_quorum_queues worker_direct "
    "worker_disable_prefetch worker_disable_rate_limits worker_enable_prefetch_count_reduction "
    "worker_enable_remote_control worker_enable_soft_shutdown_on_idle worker_eta_task_limit "
    "worker_hijack_root_logger worker_log_color worker_log_format worker_lost_wait worker_max_memory_per_child "
    "worker_max_tasks_per_child worker_pool worker_pool_putlocks worker_pool_restarts worker_prefetch_multiplier "
    "worker_proc_alive_timeout worker_redirect_stdouts worker_redirect_stdouts_level worker_send_task_events "
    "worker_soft_shutdown_timeout worker_state_db worker_task_log_format worker_timer worker_timer_precision "
)
_SETTINGS = frozenset(_OF_CELERY.split())
"""The settings of Celery 5.6, by their present names."""
_OLD_NAMES = {
    "CELERYD_TASK_SOFT_TIME_LIMIT": "task_soft_time_limit",
    "CELERYD_TASK_TIME_LIMIT": "task_time_limit",
    "CELERYD_WORKER_LOST_WAIT": "worker_lost_wait",
    "CELERY_DISABLE_RATE_LIMITS": "worker_disable_rate_limits",
    "CELERY_EAGER_PROPAGATES_EXCEPTIONS": "task_eager_propagates",
    "CELERY_ENABLE_REMOTE_CONTROL": "worker_enable_remote_control",
    "CELERY_MAX_CACHED_RESULTS": "result_cache_max",
    "CELERY_MESSAGE_COMPRESSION": "task_compression",
    "CELERY_REDIRECT_STDOUTS": "worker_redirect_stdouts",
    "CELERY_REDIRECT_STDOUTS_LEVEL": "worker_redirect_stdouts_level",
    "CELERY_RESULT_DBURI": "database_url",
    "CELERY_RESULT_DB_SHORT_LIVED_SESSIONS": "database_short_lived_sessions",
    "CELERY_RESULT_DB_TABLENAMES": "database_table_names",
    "CELERY_RESULT_ENGINE_OPTIONS": "database_engine_options",
    "CELERY_SEND_EVENTS": "worker_send_task_events",
    "CELERY_SEND_TASK_SENT_EVENT": "task_send_sent_event",
    "CELERY_TASK_RESULT_EXPIRES": "result_expires",
    "CELERY_TASK_TIME_LIMIT": "task_time_limit",
    "CELERY_TASK_SOFT_TIME_LIMIT": "task_soft_time_limit",
}
"""The old names that do not follow from the present ones."""
_NO_NAMES = frozenset(
    {"CELERYD_DIRECT", "CELERYD_DISABLE_RATE_LIMITS", "CELERYD_ENABLE_REMOTE_CONTROL", "CELERYD_LOST_WAIT"}
    | {
        "CELERYD_REDIRECT_STDOUTS",
        "CELERYD_REDIRECT_STDOUTS_LEVEL",
        "CELERYD_SEND_TASK_EVENTS",
        "CELERY_COMPRESSION",
    }
    | {"CELERY_EAGER_PROPAGATES", "CELERY_PROTOCOL", "CELERY_PUBLISH_RETRY", "CELERY_PUBLISH_RETRY_POLICY"}
    | {"CELERY_SEND_SENT_EVENT", "CELERY_SERIALIZER", "CELERY_SOFT_TIME_LIMIT", "CELERY_TIME_LIMIT"}
)
"""The names that look like old names of present settings, and that no version of Celery reads."""
_OLD_PREFIXES = (("CELERYD_", "worker_"), ("CELERYBEAT_", "beat_"), ("CELERY_", "task_"))
MAPPED = frozenset(
    {"beat_schedule", "task_acks_late", "task_annotations", "task_default_queue", "task_default_rate_limit"}
    | {"task_reject_on_worker_lost", "task_routes", "task_soft_time_limit", "task_time_limit", "timezone"}
    | {"worker_disable_rate_limits"}
)
"""The settings that are mapped or compared with what is mapped, by their present names."""
_OLD_OF_MAPPED = frozenset(
    {"CELERYBEAT_SCHEDULE", "CELERYD_TASK_TIME_LIMIT", "CELERY_ACKS_LATE", "CELERY_ANNOTATIONS"}
    | {"CELERY_DEFAULT_QUEUE", "CELERY_DEFAULT_RATE_LIMIT", "CELERY_ROUTES", "CELERY_TIMEZONE"}
    | {"CELERYD_TASK_SOFT_TIME_LIMIT", "CELERY_DISABLE_RATE_LIMITS", "CELERY_REJECT_ON_WORKER_LOST"}
)
NAMES_OF_MAPPED = _OLD_OF_MAPPED | {f"CELERY_{name.upper()}" for name in MAPPED}
"""The mapped settings by their capital names in a module of settings. An application reads only some of them."""
_ADVICE = {
    "beat_schedule_filename": "Nothing is to be done: schedules are rows of PostgreSQL.",
    "beat_schedule": "Write each entry as a schedule.",
    "beat_cron_starting_deadline": "Write `missed` and `grace` of the schedules: they say what happens to a late start.",
    "beat_scheduler": "If it reads schedules from a database, write them as schedules.",
    "beat_": "Nothing is to be done: executors start what is due, without a process of its own.",
    "broker_": "Set PENSTOCK_BROKER_URL, or use PostgreSQL as the transport.",
    "result_": "Results are kept in PostgreSQL.",
    "worker_disable_rate_limits": "If it is true, no rate limit is in force: remove each limit with a rate from the actions.",
    "worker_pool": "Write `executor` of the actions (docs/task-executors.md).",
    "worker_": "See the settings of the worker in docs/configuration.md.",
    "task_ignore_result": "Results are kept in any case.",
    "task_track_started": "Nothing is to be done: an execution is `running` as soon as a worker has it.",
    "task_send_sent_event": "Nothing is to be done: each start is a row.",
    "task_serializer": "Parameters and results are JSON.",
    "task_store_errors_even_if_ignored": "Errors are kept in any case.",
    "task_always_eager": "Call functions themselves in tests, or use `penstock.testing`.",
    **dict.fromkeys(
        ("task_acks_on_failure", "task_acks_on_failure_or_timeout", "task_acks_on_timeout"),
        "In Penstock an attempt that failed or took too long has ended: write `retry` into each action that needs it, with "
        "TimeoutError in `retry_on` for a time limit.",
    ),
    **dict.fromkeys(
        (
            "task_default_exchange",
            "task_default_exchange_type",
            "task_default_routing_key",
            "task_default_queue_type",
            "task_create_missing_queues",
            "task_create_missing_queue_type",
            "task_create_missing_queue_exchange_type",
            "task_queue_ha_policy",
        ),
        "Leave it out: a route is enough, and exists as soon as an action names it.",
    ),
    **dict.fromkeys(
        (
            "task_compression",
            "task_default_delivery_mode",
            "task_protocol",
            "task_publish_retry",
            "task_publish_retry_policy",
        ),
        "Leave it out: it is about messages of Celery's broker, and an execution is a row of PostgreSQL.",
    ),
    **dict.fromkeys(
        ("task_default_priority", "task_inherit_parent_priority"),
        "Give `priority` with each start, in the rule or in the schedule.",
    ),
    "task_queue_max_priority": "Leave it out: the executions of each route have an order by their `priority`.",
    "task_queues": "Write `route` of the actions, and `--routes` of the workers.",
    "task_eager_propagates": "Call functions themselves in tests, or use `penstock.testing`.",
    "task_store_eager_result": "Nothing is to be done: each result is stored.",
    "task_remote_tracebacks": "Leave it out: the error of an execution is stored, and read with `penstock show`.",
    "task_allow_error_cb_on_chord_header": "Write `on_failure` into each action that needs it.",
    "task_acks_late": "Write `on_worker_loss: rerun` into each action that needs it.",
    "task_reject_on_worker_lost": "Write `on_worker_loss: rerun` into each action that needs it.",
    "task_retry_on_worker_lost": "Write `on_worker_loss: rerun` into each action that needs it, and `recovery` for how often.",
    "task_soft_time_limit": "Write it as `timeout`, with `executor: process`, of each action whose task has no soft limit of "
    "its own. A longer `timeout` of an action is its hard limit, and the soft limit ends the task first.",
    "task_time_limit": "Write `timeout` and `executor: process` of each action without a `timeout` of its own.",
    "task_": "Write it into each action that needs it.",
    "event_": "Events are kept in PostgreSQL.",
    "accept_content": "Parameters and results are JSON.",
    "enable_utc": "Penstock reads schedules without a zone in UTC instead of the machine's zone: write `timezone` of each "
    "schedule.",
    "timezone": "Write `timezone` of the schedules.",
    "time_zone": "Write `timezone` of the schedules.",
    "imports": "Name the modules with `--module`.",
    "include": "Name the modules with `--module`.",
}


def is_read(name: str, namespace: bool, old: bool) -> bool:
    """Return whether an application reads a name of a module of settings, as far as the setting is mapped. With
    `namespace`, it reads present names behind `CELERY_`. With `old`, it reads the names of old versions."""
    if not name.isupper() or today(name) not in MAPPED:
        return True
    return (old and name in _OLD_OF_MAPPED) or (namespace and name == f"CELERY_{today(name).upper()}")


def is_setting(name: str, plain: bool = False) -> bool:
    """Return whether a name is a Celery setting: in capitals with a prefix, or, with `plain`, by its present name."""
    if name.isupper():
        return name.startswith(_OLD)
    return plain and (name in _PLAIN or name.startswith(_PREFIXES))


def today(name: str) -> str:
    """Return the present name of a setting: `task_routes` for `CELERY_TASK_ROUTES` and `CELERY_ROUTES`."""
    if name in _OLD_NAMES:
        return _OLD_NAMES[name]
    if name.removeprefix("CELERY_").lower() in _SETTINGS and name.startswith("CELERY_"):
        return name.removeprefix("CELERY_").lower()
    for old, prefix in _OLD_PREFIXES:
        present = prefix + name.removeprefix(old).lower()
        if name.startswith(old) and present in _SETTINGS and name not in _NO_NAMES:
            return present
    if name.startswith("CELERY_"):
        return name.removeprefix("CELERY_").lower()
    return name.lower()


_OF_OTHER_PACKAGES = {
    "redbeat_": "RedBeat reads it, which keeps schedules in Redis: leave it out, since executors start what is due.",
    "singleton_": "celery-singleton reads it: see which further starts it leaves out, and write a limit into the action.",
    "email_": "django-celery-email reads it: see which options it gives its task, and write them into the action.",
    "progress_": "celery-progress reads it: leave it out.",
    "once_": "celery-once reads it: see which further starts it leaves out, and write a limit into the action.",
}
"""The work by hand for settings of packages beside Celery, by the first part of their present names."""


def is_known(name: str) -> bool:
    """Return whether Celery has a setting of this name, or had one."""
    return today(name) in _SETTINGS | TASK_SETTINGS | _PLAIN


def advice_of(name: str) -> str:
    """Return the work by hand for a setting."""
    named = today(name)
    if named in _ADVICE:
        return _ADVICE[named]
    if not is_known(name):
        return next(
            (text for prefix, text in _OF_OTHER_PACKAGES.items() if named.startswith(prefix)),
            "Celery has no setting of this name, and reads nothing: leave it out, unless your own code or another package "
            "reads it.",
        )
    return next(
        (text for prefix, text in _ADVICE.items() if named.startswith(prefix)),
        "Penstock does not read it, since it belongs to an unused part of Celery: leave it out.",
    )


OF_ANY = "See which settings it sets, and write them into each action that needs them. It may also set the zone of schedules."
"""The advice for settings with names that only running the code would tell."""
RATES_OFF = frozenset(
    {"worker_disable_rate_limits", "CELERY_WORKER_DISABLE_RATE_LIMITS", "CELERY_DISABLE_RATE_LIMITS"}
)
"""The names of the setting that disables all rate limits."""
ZONES = frozenset({"CELERY_TIMEZONE", "timezone"})
ZONE_OF_DJANGO = "TIME_ZONE"
"""The name from which Celery reads the zone if no other name gives one."""
OF_ZONE = advice_of("timezone")
"""The advice of a gap about the zone of all schedules."""
OF_UTC = advice_of("enable_utc")
"""The advice of a gap about the zone of schedules that name none: UTC, or the zone of the machine."""
