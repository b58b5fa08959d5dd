"""The routes for the queues of a Celery application. Celery sends a task without a queue to its default queue, and the
default queue has one route, however a task comes to it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from penstock_import.celery_calls import called, imported_names, root_name, walk

CELERYS_DEFAULT = "celery"
"""The name of the default queue of an application that sets no other one."""
DEFAULT_ROUTE = "default"
"""The route of actions that name no route."""


@dataclass(slots=True)
class Queues:
    """The name of the default queue, and its route. Both are those of Penstock until the settings are known."""

    default_queue: str = DEFAULT_ROUTE
    default_route: str = DEFAULT_ROUTE
    has_list: bool = False
    """True if a setting lists queues, which a worker serves if its command names none."""

    def settle(self, default_queue: str | None, names: set[str]) -> None:
        """Choose the route of the default queue; None if only running the code would tell its name.

        It is the route `default`, for Celery's own name of the queue. A queue that another one would be merged with
        keeps its own name, and a name that the application chose is kept, too."""
        if default_queue is None:
            return
        self.default_queue = self.default_route = default_queue
        if default_queue == CELERYS_DEFAULT and DEFAULT_ROUTE not in names:
            self.default_route = DEFAULT_ROUTE

    def route(self, queue: str) -> str:
        """Return the route for a queue."""
        return self.default_route if queue == self.default_queue else queue

    def of_unrouted(self) -> dict[str, str]:
        """Return the option of an action that runs a task without a queue."""
        return {} if self.default_route == DEFAULT_ROUTE else {"route": self.default_route}

    def note(self, node: ast.AST) -> str:
        """Return a sentence about the default queue for a call that names it; an empty text for any other one."""
        words = node.keywords if isinstance(node, ast.Call) else []
        names = {getattr(word.value, "value", None) for word in words if word.arg == "queue"}
        return (
            f" The queue{text.removeprefix(', where')}."
            if self.default_queue in names and (text := self.renamed())
            else ""
        )

    def renamed(self) -> str:
        """Return words about the default queue where its route has another name; an empty text otherwise."""
        if self.default_queue == self.default_route:
            return ""
        return f", where {self.default_queue} is the route `{self.default_route}` in Penstock"

    def of_whole_worker(self) -> str:
        """Return a sentence about the routes of a worker that is started without the names of queues."""
        if self.has_list:
            return " It serves all queues of `task_queues`: name them with `--routes`."
        if self.default_route == DEFAULT_ROUTE:
            return ""
        return f" It serves the default queue: `penstock worker --routes {self.default_route}`."


def queue_names(trees: Iterable[ast.Module]) -> set[str]:
    """Return the texts that the modules give to an option, an argument or an entry called `queue`."""
    values: list[ast.expr] = []
    for tree in trees:
        for node in walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "queue":
                values.append(node.value)
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                values += [value for key, value in pairs if getattr(key, "value", None) == "queue"]
    return {
        value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


_OF_KOMBU = frozenset({"Exchange", "Queue", "binding"})
_BINDINGS = frozenset({"binding_key", "bindings", "exchange", "exchange_type"})


def has_own_exchanges(tree: ast.Module) -> bool:
    """Return whether a module may bind a queue with another key than its name: it has queues or exchanges of kombu, or names
    an exchange or a key."""
    imported = {name for name, path in imported_names(tree) if path.partition(".")[0] == "kombu"}
    return any(
        (isinstance(node, ast.Call) and root_name(node.func) in imported and called(node) in _OF_KOMBU)
        or (isinstance(node, ast.keyword) and node.arg in _BINDINGS)
        or (isinstance(node, ast.Constant) and node.value in _BINDINGS)
        or (isinstance(node, ast.Name | ast.Attribute) and _names_an_exchange(node))
        or (isinstance(node, ast.Assign) and _gives_keys(node))
        for node in walk(tree)
    )


def _gives_keys(node: ast.Assign) -> bool:
    """Return whether a statement gives queues routing keys."""
    is_queues = any(ast.unparse(target).lower().endswith("queues") for target in node.targets)
    return is_queues and any(
        getattr(part, "value", getattr(part, "arg", "")) == "routing_key" for part in ast.walk(node.value)
    )


def _names_an_exchange(node: ast.Name | ast.Attribute) -> bool:
    name = (node.id if isinstance(node, ast.Name) else node.attr).lower()
    return name.endswith(("default_exchange", "default_exchange_type", "create_missing_queue_exchange_type"))
