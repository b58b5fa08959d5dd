"""The settings that all sessions rely on, and the options in which sessions differ.

A role or a database may set any default for its sessions, so Penstock relies on none. A connection sets each setting
when it is opened, and behind a pooler each transaction sets them when it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from penstock.settings import Settings

RELIED_UPON = {
    # Texts that SQL statements parse again must have one form.
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # Literals and comparisons must have their standard meaning.
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    # A statement may take as long as its work takes. Penstock sets limits where it wants them.
    "statement_timeout": "0",
    "lock_timeout": "0",
    # The profiles of migrations/functions/planner.toml choose plans. Penstock's statements are too short for
    # just-in-time compilation.
    "jit": "off",
    "plan_cache_mode": "auto",
}
"""Settings that every session and transaction has, and their reasons."""
OF_CONNECTIONS = {
    # A transaction that waited for a lock must see what the former holder committed, which an older snapshot would
    # not show.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "idle_session_timeout": "0",
}
"""Settings that an own connection needs. Behind a pooler, `begin` sets the first two, and the pooler the third."""
LEAST_SILENCE = 10.0
"""The shortest timeout of an idle transaction in seconds, however short the stale threshold is."""
TRANSACTION_TIMEOUT_SINCE = 17
"""The first version of PostgreSQL that has a timeout for whole transactions."""
NO_TRANSACTION_TIMEOUT = "transaction_timeout = 0"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of a session. `relaxed`: its commits may be lost in a crash of the server. `timeout`: the seconds
    after which a statement is cancelled (None: never). Such a statement observes or tidies up, so it also uses no
    parallel workers. A pooler rejects these options when a connection is opened, so they are set afterwards."""

    relaxed: bool = False
    timeout: float | None = None

    @property
    def sql(self) -> str:
        commit = "set synchronous_commit = off" if self.relaxed else "reset synchronous_commit"
        if self.timeout is None:
            return f"{commit}; reset statement_timeout; reset max_parallel_workers_per_gather"
        set_timeout = f"set statement_timeout = {self.timeout * 1000:.0f}"
        return f"{commit}; {set_timeout}; set max_parallel_workers_per_gather = 0"


NO_OPTIONS = SessionOptions()


def left_alone(settings: Settings) -> str:
    """Return the timeout of an idle transaction in milliseconds. A process that is frozen or cut off within a
    transaction keeps its locks. The locks must be released when other processes take over its work."""
    return f"{max(settings.stale_threshold, LEAST_SILENCE) * 1000:.0f}"


def search_path(settings: Settings) -> str:
    """Return the search path of sessions and of every function of the owner.

    Without quotes, PostgreSQL would read `Jobs` as `jobs`, and could not read `a.b`. Temporary tables come last, so
    that they cannot replace ours. Sessions and functions have the same path, since PostgreSQL plans a statement again
    if the path differs.
    """
    return f'"{settings.database_schema}", pg_temp'


def of_connection(settings: Settings) -> dict[str, str]:
    """Return the settings that an own connection sets when it is opened. `reset` returns to these."""
    return {
        **RELIED_UPON,
        **OF_CONNECTIONS,
        "search_path": search_path(settings),
        "idle_in_transaction_session_timeout": left_alone(settings),
    }


@lru_cache(64)
def begin_pooled(schema_path: str, silence: str, *, relaxed: bool, writes: bool, major: int) -> str:
    """Return the statements that begin a transaction behind a pooler: its connections may have any settings. The
    statements are one round trip."""
    local = {
        **{name: value if "," in value else f"'{value}'" for name, value in RELIED_UPON.items()},
        "search_path": schema_path,
        "idle_in_transaction_session_timeout": silence,
        # No permits are used: this transaction takes several round trips, and could stay open while it holds them.
        "penstock.assigns": "off",
    }
    if relaxed:
        local["synchronous_commit"] = "off"
    assignments = [f"{name} = {value}" for name, value in local.items()]
    if major >= TRANSACTION_TIMEOUT_SINCE:
        assignments.append(NO_TRANSACTION_TIMEOUT)
    begin = f"begin isolation level read committed{', read write' if writes else ''}"
    return "; ".join((begin, *(f"set local {setting}" for setting in assignments)))
