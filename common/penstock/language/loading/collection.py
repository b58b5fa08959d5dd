"""A set of definitions, by ref, without duplicates, with the check of their references to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.definitions.action import Action
from penstock.language.definitions.document import Document
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.qualified_name import Pack
from penstock.language.definitions.route import Route
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.trigger import Trigger
from penstock.language.loading.reference_checks import KnownRefs, check_references, referred
from penstock.language.terms.sources import Source

_RUNNABLE = ("action", "workflow")
"""The kinds that share one set of refs: the ref in a rule must name only one of them."""


class Definitions:
    """The declarations of modules and packs. Immutable; two sets are joined with `+`."""

    def __init__(self, items: Iterable[Any] = (), packs: Iterable[Pack] = ()) -> None:
        """Create a set of actions, triggers, rules, routes, limits, schedules and workflows. The same object may come
        twice.

        Raises DefinitionError, with both places, if two of a kind have the same ref.
        """
        self._items: dict[tuple[str, str], Any] = {}
        self.packs = {pack.name: pack for pack in packs}
        for item in items:
            for part in item.parts() if hasattr(item, "parts") else (item,):
                self._add(part)

    def _add(self, item: Any) -> None:
        key = (kind_of(item), item.ref)
        existing = self._items.get(key)
        # An action or workflow makes new Limit objects for its own limits each time its parts are asked for.
        if existing is item or (isinstance(item, Limit) and item == existing):
            return
        if (
            isinstance(item, Limit)
            and existing is not None
            and existing.scope == item.scope == item.ref.rpartition(".")[0]
        ):
            raise item.source.wrong(
                f"action {item.scope} has two limits by the same parameters",
                "Write them as one: Limit(5, by='customer', rate='100/min').",
            )
        if key[0] in _RUNNABLE and existing is None:
            existing = next(
                (candidate for kind in _RUNNABLE if (candidate := self._items.get((kind, item.ref)))), None
            )
        if existing is not None:
            raise source_of(item).wrong(
                f"{key[0]} {key[1]} was declared before{_as_another(existing, key[0])}, at {source_of(existing)}",
                "Give one of them another ref, or remove it.",
            )
        self._items[key] = item

    def of(self, kind: str) -> dict[str, Any]:
        """Return the definitions of a kind by ref, in the order in which they were declared."""
        return {ref: item for (item_kind, ref), item in self._items.items() if item_kind == kind}

    @property
    def actions(self) -> dict[str, Action[..., Any]]:
        return self.of("action")

    @property
    def triggers(self) -> dict[str, Trigger]:
        return self.of("trigger")

    @property
    def rules(self) -> dict[str, Rule]:
        return self.of("rule")

    @property
    def limits(self) -> dict[str, Limit]:
        return self.of("limit")

    @property
    def schedules(self) -> dict[str, Schedule]:
        return self.of("schedule")

    @property
    def workflows(self) -> dict[str, Any]:
        return self.of("workflow")

    @property
    def routes(self) -> list[Route]:
        """Return the routes in order. Those without a position of their own come in the order of writing, after
        position 1000."""
        placed = [route.placed(1000 + n) for n, route in enumerate(self.of("route").values())]
        return sorted(placed, key=lambda route: (route.position, route.pattern))

    def documents(self) -> list[Document]:
        """Return the documents that `penstock apply` stores. Raises DefinitionError for a definition that cannot be stored."""
        routes = {route.ref: route for route in self.routes}
        items = [routes[ref] if kind == "route" else item for (kind, ref), item in self._items.items()]
        return [item.document() for item in items]

    def refers_to(self) -> set[str]:
        """Return the refs of all actions, workflows and triggers that these definitions name."""
        return referred(self)

    def check(self, known_refs: KnownRefs | None = None, *, accept_unknown: bool = False) -> None:
        """Raise one DefinitionError for all wrong references.

        A definition may refer to triggers and actions of this set or of `known_refs`, with parameters that they take.
        Its expressions may use only names that will exist. With `accept_unknown`, it may refer to others, too.
        """
        check_references(list(self), known_refs or {}, accept_unknown=accept_unknown)

    def __add__(self, other: Definitions) -> Definitions:
        return Definitions([*self, *other], [*self.packs.values(), *other.packs.values()])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)


def kind_of(item: Any) -> str:
    kind = getattr(item, "kind", None)
    if not isinstance(kind, str) or not isinstance(getattr(item, "ref", None), str):
        raise DefinitionError(
            f"{item!r} is not a definition", hint="Give actions, triggers, rules, workflows, ..."
        )
    return kind


def _as_another(existing: Any, kind: str) -> str:
    return (
        ""
        if kind_of(existing) == kind
        else f" as a{'n' * (kind_of(existing) == 'action')} {kind_of(existing)}"
    )


def source_of(item: Any) -> Source:
    source = getattr(item, "source", None)
    return source if isinstance(source, Source) else Source("?", 0)
