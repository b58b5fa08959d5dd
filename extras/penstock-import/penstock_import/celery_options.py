"""The options of Celery's tasks, routes and schedule entries. Some are mapped, some need no mapping, and each other
option has its work by hand. An unknown option becomes a gap too."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock_import.celery_calls import NotLiteral, literal, seconds
from penstock_import.celery_errors import Doubt, ErrorNames

_SEE = (
    "Celery does not know this option and keeps it as an attribute of the task: remove it, unless your own code or the class "
    "of the task reads it. Write what that does into the action."
)
_OF_SINGLETON = (
    "celery-singleton reads it, if `base` is its class Singleton: see which further starts it leaves out, and write a limit "
    "into the action."
)
_OF_PACKAGES: Mapping[str, str] = {
    **dict.fromkeys(("lock_expiry", "raise_on_duplicate", "unique_on"), _OF_SINGLETON),
    "once": "celery-once reads it, if `base` is its class QueueOnce: see which further starts it leaves out, and write a limit "
    "into the action.",
}
"""The work by hand for options that a package beside Celery reads."""
SEE_ENTRY = "Celery's beat refuses an entry with such a key: remove the key, or correct it."
SEE_ROUTE = "Celery gives it to each message: see what it should do."
RETRY_OPTIONS = frozenset(
    {
        "max_retries",
        "default_retry_delay",
        "autoretry_for",
        "dont_autoretry_for",
        "retry_kwargs",
        "retry_backoff",
    }
    | {"retry_backoff_max", "retry_jitter"}
)
_BOUNDS = frozenset({"max_retries", "default_retry_delay"})
"""The options that bound the retries which code asks for, wherever that code is."""
_FOR_EVER = 2_147_483_647
Tell = Callable[[ast.expr, str, str], None]
"""A function that records a gap: (node, option, what to do by hand)."""
ErrorsOf = Callable[[ast.expr, Doubt], list[str]]
"""A function that returns the names of the classes of errors in an expression."""


def of_unknown(option: str) -> str:
    """Return the work by hand for an option of a task that Celery does not know."""
    return _OF_PACKAGES.get(option, _SEE)


def _without_file(node: ast.expr, doubt: Doubt) -> list[str]:
    """Return the names of errors of Python alone."""
    return ErrorNames({}).of("", node, doubt)


def retry_of(
    options: Mapping[str, ast.expr],
    retries_by_hand: bool,
    tell: Tell,
    errors_of: ErrorsOf = _without_file,
) -> dict[str, Any] | None:
    """Return the retry policy of a task; None if the task is never retried. Celery retries the errors in
    `autoretry_for`, and on a call of `self.retry`. `max_retries` and `default_retry_delay` alone cause no retry, and bound
    those that code asks for. So does the policy, which retries `Retry` alone then."""
    values = _values(options, tell)
    errors = _error_names(options, "autoretry_for", tell, errors_of)
    is_automatic = bool(errors) or _is_unknown(options.get("autoretry_for"))
    if not is_automatic and not retries_by_hand and not values.keys() & _BOUNDS:
        return None
    own_tries, own_pause = values.get("max_retries", 3), values.get("default_retry_delay", 180)
    tries, pause = own_tries, own_pause
    kwargs = (
        values.get("retry_kwargs", {}) if is_automatic else {}
    )  # `self.retry()` does not read `retry_kwargs`
    if kwargs.get("max_retries") is not None:  # Celery reads None as a missing value
        tries = kwargs["max_retries"]
    if kwargs.get("countdown") is not None:
        pause = kwargs["countdown"]
    policy: dict[str, Any] = {"max_attempts": _FOR_EVER if tries is None else min(int(tries) + 1, _FOR_EVER)}
    backoff = values.get("retry_backoff", False) if is_automatic else False
    if backoff:
        first = int(max(1.0, float(backoff)))
        longest = int(values.get("retry_backoff_max", 600))
        policy |= {
            "backoff": "exponential",
            "factor": 2,
            "initial_delay": min(first, longest),
            "max_delay": longest,
        }
        policy["jitter"] = 1.0 if values.get("retry_jitter", True) else 0.0
    else:
        policy |= {"backoff": "fixed", "initial_delay": pause, "max_delay": max(pause, 60), "jitter": 0.0}
    policy["retry_on"] = errors or ["Retry"]
    never = _error_names(options, "dont_autoretry_for", tell, errors_of)
    if never:
        policy["never_on"] = never
    if "SoftTimeLimitExceeded" in errors:
        tell(options["autoretry_for"], "autoretry_for with SoftTimeLimitExceeded, which Penstock never raises",
             "An attempt that exceeds its `timeout` fails with TimeoutError: name this error in `retry_on`.")  # fmt: skip
    if is_automatic and retries_by_hand and (backoff or pause != own_pause):
        tell(options["autoretry_for"], "autoretry_for beside self.retry, which has other delays",
             "Pass `after` to each Retry that the function raises.")  # fmt: skip
    if is_automatic and retries_by_hand and tries != own_tries:
        tell(options["retry_kwargs"], f"autoretry_for beside self.retry, which max_retries={own_tries} of the task counts for",
             "In Penstock one policy counts all attempts: raise NonRetryable in the function to stop earlier.")  # fmt: skip
    return policy


def _is_unknown(errors: ast.expr | None) -> bool:
    """Return whether `autoretry_for` may list errors. An empty list, and None, have none."""
    if errors is None or (isinstance(errors, ast.Tuple | ast.List) and not errors.elts):
        return False
    return not (isinstance(errors, ast.Constant) and not errors.value)


def _values(options: Mapping[str, ast.expr], tell: Tell) -> dict[str, Any]:
    """Return the values of the options that Celery uses directly. Any other option becomes a gap, and is left out."""
    values: dict[str, Any] = {}
    for name in RETRY_OPTIONS & options.keys() - {"autoretry_for", "dont_autoretry_for"}:
        try:
            value = seconds(options[name]) if name == "default_retry_delay" else literal(options[name])
        except NotLiteral as error:
            tell(options[name], f"{name} is computed: {error}", "Write the value into `retry` of the action.")
            continue
        if name == "retry_kwargs" and isinstance(value, dict) and value.keys() - {"max_retries", "countdown"}:
            tell(
                options[name],
                "retry_kwargs with more than max_retries and countdown",
                "Write `retry` of the action.",
            )
        elif not _TAKEN[name](value):
            tell(options[name], f"{name}={ast.unparse(options[name])}, whose meaning is not known",
                 "Write the intended value into `retry` of the action.")  # fmt: skip
        else:
            values[name] = value
    return values


def is_amount(value: object) -> bool:
    """Return whether a value is a finite number that is not negative."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf  # type: ignore[operator]


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and value >= 0)


def _are_kwargs(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    countdown = value.get("countdown")
    return _is_count(value.get("max_retries")) and (countdown is None or is_amount(countdown))


_TAKEN: Mapping[str, Callable[[Any], bool]] = {
    "max_retries": _is_count,
    "default_retry_delay": is_amount,
    "retry_kwargs": _are_kwargs,
    "retry_backoff": lambda value: isinstance(value, int | float) and math.isfinite(value),
    "retry_backoff_max": lambda value: is_amount(value) and value >= 1,
    "retry_jitter": lambda value: True,
}
"""The tests whether a value can be mapped, by option."""


def _error_names(options: Mapping[str, ast.expr], name: str, tell: Tell, errors_of: ErrorsOf) -> list[str]:
    """Return the names of the error classes, by which a policy identifies them."""
    node = options.get(name)
    if node is None:
        return []

    def doubt(path: str) -> None:
        tell(node, f"{name} with {path}, an error that is matched by its name",
             "Penstock compares errors by the names of their classes: check that only its class has this name.")  # fmt: skip

    try:
        return errors_of(node, doubt)
    except NotLiteral:
        tell(node, f"{name} is computed: {ast.unparse(node)}", "Name the errors in `retry` of the action.")
        return []


_RATE = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?:/(?P<unit>[smh]))?")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}


_LONGEST_PAUSE_S = 86_400


def rate_limit(node: ast.expr) -> dict[str, Any] | None:
    """Return the limit for a Celery rate; None if there is no rate. Celery's bucket has room for one start, so it permits
    no burst: `10/h` is a start every 360 seconds. Raises NotLiteral for a value that is not a rate, or only known
    when the module runs."""
    value = literal(node)
    if value is None or value is False:
        return None
    match = _RATE.fullmatch(str(value)) if type(value) in (str, int, float) else None
    if match is None:
        raise NotLiteral(ast.unparse(node))
    count, unit = float(match["count"]), _UNIT_SECONDS[match["unit"] or "s"]
    if count == 0:  # in Celery, a rate of 0 means no limit
        return None
    pause = unit / count
    if not 0 < pause <= _LONGEST_PAUSE_S:
        raise NotLiteral(ast.unparse(node))
    return {"rate": {"count": 1, "seconds": int(pause) if pause.is_integer() else pause}}


_NOTHING: Mapping[str, tuple[object, ...] | None] = {
    "name": None,
    "bind": None,  # the report asks the user to move the code
    "ignore_result": None,  # Penstock stores the result in any case
    "track_started": None,
    "send_events": None,
    "trail": None,
    "store_errors_even_if_ignored": None,
    "typing": (True, None),
    "serializer": ("json", None),
    "priority": (None,),
    "queue": (None,),
    "shared": None,
    "lazy": None,
    "acks_on_failure_or_timeout": (True, None),
    "acks_on_failure": (True, None),
    "acks_on_timeout": (True, None),
    "retry_on_worker_lost": (False, None),
    "enabled": (True,),
    "soft_time_limit": (None,),
    "relative": (False,),
}
"""The options that need no mapping: with any value (None), or with one of these values."""


def says_nothing(option: str, node: ast.expr) -> bool:
    """Return whether an option with this value needs no mapping."""
    if option == "options" and isinstance(node, ast.Dict) and not node.keys:
        return True
    if option not in _NOTHING:
        return False
    values = _NOTHING[option]
    return values is None or (isinstance(node, ast.Constant) and node.value in values)


TASK_BY_HAND: Mapping[str, str] = {
    "**options": "Write out the options that are meant.",
    "abstract": "Move the code of the class into the functions.",
    "acks_on_failure_or_timeout": "Penstock does not redeliver such an attempt. To run it again, write `retry` of the action.",
    "acks_on_failure": "Penstock does not redeliver such an attempt. To run it again, write `retry` of the action.",
    "acks_on_timeout": "Penstock does not redeliver such an attempt. To run it again, name TimeoutError in `retry_on`.",
    "retry_on_worker_lost": "Write `on_worker_loss: rerun` of the action, and `recovery` for how often.",
    "backend": "Results are kept in PostgreSQL.",
    "base": "Move the code of the class into the function. Its attributes are options of the task: write them into the action.",
    "after_return": "Do it at the end of the function, or in `on_exit` of a workflow.",
    "before_start": "Do it at the start of the function.",
    "Strategy": "Workers start attempts in one way: see what it should do.",
    "Request": "Attempts have one kind of request: see what it should do.",
    "autoregister": "Leave out the action if nothing starts it.",
    "pydantic_strict": "The function validates what it takes.",
    "pydantic_context": "The function validates what it takes.",
    "pydantic_dump_kwargs": "The function returns what can be JSON.",
    "delivery_mode": "Nothing is to be done: executions are stored in PostgreSQL.",
    "store_eager_result": "Nothing is to be done: each result is stored in PostgreSQL.",
    "compression": "Nothing is to be done: messages are small.",
    "exchange": "Write `route` of the action.",
    "expires": "Give `expires_at` with each start, or `expires` in the rule.",
    "on_failure": "Write `on_failure` of the action.",
    "on_retry": "Do it in the function, which runs again at each retry.",
    "on_success": "Write `on_success` of the action.",
    "priority": "Give `priority` with each start, or in the rule.",
    "pydantic": "The function takes models as they are.",
    "resultrepr_maxsize": "Results are shown whole.",
    "routing_key": "Write `route` of the action.",
    "run_every": "Write it as a schedule.",
    "serializer": "Parameters and results are JSON.",
    "soft_time_limit": "Write `timeout` and `executor: process` of the action: the process gets SIGTERM, which raises an "
    "error in "
    "the function, and may clean up within the grace period. To retry an overrun, name TimeoutError in `retry_on`.",
    "typing": "Celery's worker fails a call with wrong parameters. Penstock refuses to start it.",
    "throws": "In Celery it only sets the level of a log line: raise NonRetryable for errors that need no retry.",
}
TASK_OPTIONS = frozenset(
    {"acks_late", "queue", "rate_limit", "reject_on_worker_lost", "time_limit", *TASK_BY_HAND}
) - {
    "abstract",
    "base",
}
"""The options of a task that affect its execution, besides those of its retries."""
ROUTE_BY_HAND: Mapping[str, str] = {
    "exchange": "A route is enough.",
    "exchange_type": "A route is enough.",
    "routing_key": "A route is enough.",
    "priority": "Give `priority` with each start, or in the rule.",
}
BEAT_BY_HAND: Mapping[str, str] = {
    "enabled": "Write `enabled` of the schedule.",
    "options": "Write out the names of the options: `priority` and `expires` of the schedule, and `route` of the action.",
    "expires": "Write `expires` of the schedule, as a duration after the start, or `timeouts` of the action.",
    "priority": "Write `priority` of the schedule, a whole number.",
    "relative": "Write a `cron`: an `every` counts from a fixed instant.",
    "name": "The key of the entry is the name of the schedule.",
}

_OF_MESSAGES = frozenset(
    {"add_to_parent", "compression", "connection", "delivery_mode", "producer", "publisher", "router"}
)
OF_BROKER = _OF_MESSAGES | {"ignore_result", "retry", "retry_policy"}
"""The options of sending that need no work by hand: a schedule with one of them counts as mapped, and has a line."""
SENDING_BY_HAND: Mapping[str, str] = {
    **dict.fromkeys(
        sorted(_OF_MESSAGES),
        "Leave it out: it is about messages of Celery's broker, and an execution is a row of PostgreSQL.",
    ),
    **dict.fromkeys(
        ("retry", "retry_policy"),
        "Leave it out: it is about a broker that is away, and an execution is a row of PostgreSQL.",
    ),
    **dict.fromkeys(("chord", "group_id", "parent_id", "root_id"), "Write a workflow with its tasks."),
    **dict.fromkeys(("exchange", "routing_key"), "Write `route` of the action."),
    "countdown": "Celery delays each start by it: move the time of the schedule, or start a workflow whose task has a `delay`.",
    "eta": "In Celery all starts wait until that one instant: write a rule or a schedule for it.",
    "expires": "Write `expires` of the schedule, as a duration after the start, or `timeouts` of the action.",
    "headers": "An execution has no headers: write them as parameters of the action.",
    "ignore_result": "Leave it out: results are kept in any case.",
    "link": "Write `on_success` of the action.",
    "link_error": "Write `on_failure` of the action.",
    "priority": "Write `priority` of the schedule, a whole number.",
    "queue": "Write `route` of the action.",
    "reply_to": "Read the result of the execution where it is needed.",
    "serializer": "Parameters and results are JSON.",
    "shadow": "Write `title` of the action.",
    "soft_time_limit": "Write `timeout` and `executor: process` of the action: the process gets SIGTERM, which raises an "
    "error in "
    "the function, and may clean up within the grace period.",
    "task_id": "Leave it out: each execution has an id of its own.",
    "time_limit": "Write `timeout` and `executor: process` of the action, or of an action of its own for the schedule.",
}
"""The work by hand for each option with which a schedule sends its task."""
SEE_SENDING = (
    "Celery gives it to each message: see what it should do, and write it as a parameter of the action."
)


def start_options(
    options: Mapping[str, ast.expr], constants: Mapping[str, ast.expr]
) -> tuple[dict[str, Any], list[str]]:
    """Return the queue, the priority and the expiry with which a schedule sends its task, and the names of the other options."""
    values: dict[str, Any] = {}
    unmapped: list[str] = []
    for option, node in options.items():
        try:
            value = seconds(node, constants) if option == "expires" else literal(node, constants)
        except NotLiteral:
            value = node
        if option in _LEGAL_START and _LEGAL_START[option](value):
            values[option] = value
        elif not (isinstance(node, ast.Constant) and node.value is None):
            unmapped.append(option)
    return values, unmapped


_LEGAL_START: Mapping[str, Callable[[Any], bool]] = {
    "queue": lambda value: isinstance(value, str) and bool(value),
    "priority": lambda value: type(value) is int and 0 <= value <= 255,
    "expires": lambda value: isinstance(value, int | float) and 0 < value < math.inf,
}
"""The tests whether a value has a meaning in Penstock, by the option with which a schedule sends its task."""
