"""The pools of processes and threads. Their `apply_async` has the name of the method of Celery's tasks."""

from __future__ import annotations

import ast

from penstock_import.celery_calls import called, imported_names, root_name, walk

_PACKAGES = frozenset({"gevent", "mpire", "multiprocess", "multiprocessing", "pathos"})
_MAKING = frozenset({"Pool", "ProcessPool", "ThreadPool", "ThreadPoolExecutor", "WorkerPool", "get_context"})
_METHODS = frozenset({"apply", "apply_async", "map_async", "starmap_async"})


def mark_pools(tree: ast.Module) -> None:
    """Mark each call of a method of a pool that is not Celery's."""
    makers = {name for name, path in imported_names(tree) if set(path.split(".")) & _PACKAGES}
    if not makers:
        return
    pools: dict[str, bool] = {}
    for node in walk(tree):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.withitem):
            pairs = [(node.optional_vars, node.context_expr)]
        for target, value in pairs:
            if isinstance(target, ast.Name | ast.Attribute):
                name = _last(target)
                pools[name] = pools.get(name, True) and _makes_pool(value, makers)
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            holder = node.func.value
            if pools.get(_last(holder), False) or _makes_pool(holder, makers):
                node.__dict__["is_of_pool"] = True


def is_of_pool(call: ast.Call) -> bool:
    """Return whether a call is one of a method of a pool that is not Celery's."""
    return bool(call.__dict__.get("is_of_pool"))


def _makes_pool(node: ast.expr, makers: set[str]) -> bool:
    """Return whether an expression makes a pool: `Pool(4)`, `multiprocessing.get_context("spawn").Pool()`."""
    if not isinstance(node, ast.Call) or called(node) not in _MAKING:
        return False
    holder = node.func
    while isinstance(holder, ast.Attribute | ast.Call):
        holder = holder.value if isinstance(holder, ast.Attribute) else holder.func
    return root_name(holder) in makers


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
