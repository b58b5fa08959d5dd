"""The results of starts that code keeps in a name, and the work by hand for what it does with one."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from penstock_import.celery_calls import called
from penstock_import.celery_pools import is_of_pool

_STARTING = frozenset({"apply_async", "delay", "send_task"})
_MAKING = frozenset({"AsyncResult", "GroupResult", "ResultSet"})
_CANVASES = frozenset({"chain", "chord", "group"})
_WAIT = "Write `await client.result(id, timeout=...)`, or a task of a workflow that needs the started one."
_STATE = "Write `await client.get(id)`, which has the status of the execution."
_END = (
    "Write `await client.cancel(id)`. It also ends a running execution, as `terminate=True` does in Celery."
)
_STORE = "Leave it out: each result is kept for the retention of executions. Keep the ids, or give all starts the same label."
_PARTS = "Write a workflow: its tasks are the parts, and `client.result(id)` is the result of the whole."
_ADVICE: Mapping[str, str] = {
    **dict.fromkeys(("collect", "get", "iter_native", "join", "join_native", "throw", "wait"), _WAIT),
    **dict.fromkeys(("maybe_reraise", "maybe_throw", "result", "info", "traceback"), _WAIT),
    **dict.fromkeys(("completed_count", "date_done", "failed", "ignored", "ready", "retries"), _STATE),
    **dict.fromkeys(
        ("state", "status", "successful", "waiting", "args", "kwargs", "name", "queue", "worker"), _STATE
    ),
    **dict.fromkeys(("revoke", "revoke_by_stamped_headers"), _END),
    **dict.fromkeys(("delete", "forget", "restore", "save"), _STORE),
    **dict.fromkeys(
        ("add", "as_list", "as_tuple", "build_graph", "children", "clear", "discard", "get_leaf"), _PARTS
    ),
    **dict.fromkeys(("graph", "iterdeps", "parent", "remove", "results", "update"), _PARTS),
    "app": "See what it should do: the client answers questions about an execution by its id.",
    "backend": "Results are kept in PostgreSQL.",
    "supports_native_join": "Leave it out: there is only one way to read a result.",
    "then": "Write `on_success` of the action, or a task of a workflow that needs the started one.",
}
"""The work by hand for each member of a result."""
PARTS = frozenset({"children", "get_leaf", "iterdeps", "parent", "results"})
"""The members of a result that are results, or contain some."""
HARMLESS_OF_RESULT = frozenset({"id", "task_id"})
"""The members of a result that have the id of what was started, as `client.start(...)` returns it."""
_OF_RESULTS_ALONE = frozenset(
    {
        "collect", "completed_count", "forget", "get_leaf", "iter_native", "iterdeps", "join_native", "maybe_reraise",
        "maybe_throw", "revoke", "successful", "supports_native_join", "traceback", "wait",
    }
)  # fmt: skip
"""The members that hardly any other object has."""
_WORDS_OF_GET = frozenset(
    {"callback", "disable_sync_subtasks", "interval", "on_interval", "propagate", "timeout"}
)
PASSED_ON = (
    "In Penstock it is the id of an execution: pass the id, and let that code ask the client for the result."
)


def is_start(call: ast.Call) -> bool:
    """Return whether a call returns the result of a start: `task.delay()`, `AsyncResult(id)`, `group(...)()`."""
    if is_of_pool(call):
        return False
    name = called(call)
    is_canvas = isinstance(call.func, ast.BinOp) or (
        isinstance(call.func, ast.Call) and called(call.func) in _CANVASES
    )
    is_restored = (
        name == "restore" and isinstance(call.func, ast.Attribute) and _last(call.func.value) in _MAKING
    )
    return (
        is_canvas
        or is_restored
        or name in _MAKING
        or (isinstance(call.func, ast.Attribute) and name in _STARTING)
    )


def is_class_of_results(node: ast.Attribute | ast.Name) -> bool:
    """Return whether an expression reads a class of results: `AsyncResult`, `app.AsyncResult`."""
    return isinstance(node.ctx, ast.Load) and _last(node) in _MAKING


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def advice_of_result(member: str) -> str | None:
    """Return the work by hand for a member of a result; None for a member that no result has."""
    return _ADVICE.get(member)


def may_be_of_result(is_certain: bool, member: str, call: ast.Call | None) -> bool:
    """Return whether a member may be that of a result. A value that is not certain is the member of any object, and may be no
    result."""
    if is_certain or member in _OF_RESULTS_ALONE:
        return True
    words = {word.arg for word in call.keywords} if call is not None else set()
    return bool(words & _WORDS_OF_GET) or (
        member in ("ready", "failed", "join") and call is not None and not call.args
    )
