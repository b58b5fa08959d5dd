"""The settings that a session relies upon, and the options in which sessions differ.

A role or a database may bring any default to its sessions. Nothing here is left to such a default: a connection names each
setting as it opens, and behind a pooler each transaction names them as it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from penstock.settings import Settings

RELIED_UPON = {
    # A text form that SQL reads again has one meaning.
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # SQL means what its text says.
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    # A statement may take as long as its work takes. Penstock sets limits where it wants them.
    "statement_timeout": "0",
    "lock_timeout": "0",
    # Plans are chosen by the profiles of migrations/functions/planner.toml. Penstock's statements are too short to be compiled.
    "jit": "off",
    "plan_cache_mode": "auto",
}
"""Settings that every session and transaction has, and why."""
OF_CONNECTIONS = {
    # A lock's owner decides on what it reads after it has waited for the lock, which an older snapshot does not show.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "idle_session_timeout": "0",
}
"""Settings that a connection of one's own needs. Behind a pooler `begin` names the first two, and the pooler has the third."""
LEAST_SILENCE = 10.0
"""Seconds that a transaction may be left alone, however short the stale threshold is."""
TRANSACTION_TIMEOUT_SINCE = 17
"""The first version of PostgreSQL that can end a transaction because of its length."""
NO_TRANSACTION_TIMEOUT = "transaction_timeout = 0"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that a session asks of its connection. `relaxed`: its commits may be lost in a crash of the server. `most`: the
    seconds after which a statement is cancelled (None: never). Such a statement looks on or tidies up, so it takes one core and
    leaves the others to work. A pooler refuses these options as a connection opens, so they are set afterwards."""

    relaxed: bool = False
    most: float | None = None

    @property
    def sql(self) -> str:
        commit = "set synchronous_commit = off" if self.relaxed else "reset synchronous_commit"
        if self.most is None:
            return f"{commit}; reset statement_timeout; reset max_parallel_workers_per_gather"
        timeout = f"set statement_timeout = {self.most * 1000:.0f}"
        return f"{commit}; {timeout}; set max_parallel_workers_per_gather = 0"


NO_OPTIONS = SessionOptions()


def left_alone(settings: Settings) -> str:
    """Return the milliseconds for which a transaction may be left alone. A process that falls silent in the midst of a
    transaction (frozen, cut off) keeps its locks. They have to go when other processes take its work over."""
    return f"{max(settings.stale_threshold, LEAST_SILENCE) * 1000:.0f}"


def search_path(settings: Settings) -> str:
    """Return the path that a session and every function of the owner's look names up by.

    Without quotes PostgreSQL would read `Jobs` as `jobs`, and `a.b` not at all. A temporary table comes last, so that it cannot
    replace one of ours. Both have the same path, since PostgreSQL plans a statement again where the path is another.
    """
    return f'"{settings.database_schema}", pg_temp'


def of_connection(settings: Settings) -> dict[str, str]:
    """Return the settings that a connection of one's own names as it opens. `reset` goes back to these."""
    return {
        **RELIED_UPON,
        **OF_CONNECTIONS,
        "search_path": search_path(settings),
        "idle_in_transaction_session_timeout": left_alone(settings),
    }


@lru_cache(64)
def begin_pooled(schema_path: str, silence: str, *, relaxed: bool, writes: bool, major: int) -> str:
    """Return the begin of a transaction behind a pooler: its connections have any settings. It is one round trip."""
    local = {
        **{name: value if "," in value else f"'{value}'" for name, value in RELIED_UPON.items()},
        "search_path": schema_path,
        "idle_in_transaction_session_timeout": silence,
    }
    if relaxed:
        local["synchronous_commit"] = "off"
    assignments = [f"{name} = {value}" for name, value in local.items()]
    if major >= TRANSACTION_TIMEOUT_SINCE:
        assignments.append(NO_TRANSACTION_TIMEOUT)
    begin = f"begin isolation level read committed{', read write' if writes else ''}"
    return "; ".join((begin, *(f"set local {setting}" for setting in assignments)))
