"""Windows of rules: patterns of several events that start one execution."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from penstock.language.definitions.event_paths import LONGEST_S, EventPaths, at_most_a_day
from penstock.language.definitions.qualified_name import TriggerRef, is_name, pack_of, qualified, ref_of
from penstock.language.expressions.template_checks import Condition
from penstock.language.terms.debounce import MAX_EVENTS
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Items, Options, Wrong
from penstock.language.terms.sources import caller
from penstock.language.terms.windows import PATTERNS

MAX_PARTS = 20


def _part_name(name: str | None) -> str | None:
    if name is not None and not is_name(name):
        raise Wrong(f"is not a name: {name!r}", "Write small letters, digits and _, a letter first.")
    return name


class Part(Options):
    """A part of a window: the events of a trigger that meet a condition."""

    trigger: TriggerRef
    """The trigger of its events."""
    when: Condition | None = None
    """A condition over `event` and `payload`. Without it every event of the trigger fits."""
    by: EventPaths = ()
    """Paths instead of those of the window, in the same order."""
    name: Annotated[str, AfterValidator(_part_name)] | None = None
    """The name under which templates reach its event: `parts.NAME`."""


def _parts(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise Wrong("is not a list", "Write a list of triggers: [shop.placed, shop.paid].")
    return tuple(
        entry if isinstance(entry, Mapping | Part) else {"trigger": ref_of(entry)} for entry in value
    )


def with_pack(window: Mapping[str, Any], pack: str) -> dict[str, Any]:
    """Return the options of a window, with the pack in front of each trigger that is named without one."""

    def in_pack(entry: Any) -> Any:
        if isinstance(entry, Mapping) and isinstance(entry.get("trigger"), str):
            return {**entry, "trigger": qualified(entry["trigger"], pack)}
        return qualified(entry, pack) if isinstance(entry, str) else entry

    patterns = {name: window[name] for name in PATTERNS if isinstance(window.get(name), list | tuple)}
    return {**window, **{name: [in_pack(part) for part in parts] for name, parts in patterns.items()}}


Parts = Annotated[Items[Part], Field(max_length=MAX_PARTS), BeforeValidator(_parts)]


class Window(Options):
    """The pattern of events of a rule, and the time within which they come: `Window(sequence=[placed, paid],
    by="payload.order", within="1h")`. It has exactly one of sequence, all, any, count and absence. Raises
    DefinitionError if a value is not valid.
    """

    sequence: Parts = ()
    """An event for each part, in this order."""
    all: Parts = ()
    """An event for each part, in any order."""
    any: Parts = ()
    """Events for `at_least` of the parts."""
    count: Parts = ()
    """`at_least` events of its one part."""
    absence: Parts = ()
    """An event of the first part that no event of the second part follows within the time."""
    at_least: Annotated[int, Field(strict=True, ge=1, le=MAX_EVENTS)] | None = None
    """The number of events of `count`, or of parts of `any`. `any` has 1 by default."""
    by: EventPaths = ()
    """Paths within `event` and `payload`, such as `payload.order`. Events with different values there never match together."""
    within: Annotated[PositiveDuration, AfterValidator(at_most_a_day)] | None = None
    """The length of the window from its first event, at most a day."""
    timestamp: Annotated[str, Field(pattern=r"^payload(\.[A-Za-z0-9_-]+)+$")] | None = None
    """The path of the time of an event, such as `payload.at`: Unix seconds, or text in ISO 8601 with a zone. None: the time at
    which it was stored."""
    lateness: Annotated[PositiveDuration, AfterValidator(at_most_a_day)] | None = None
    """The time for which an event may be stored after its `timestamp`, at most a day. A later event joins no window."""

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        pack = pack_of(caller().f_globals)
        return with_pack(values, pack.name) if pack else values

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            sequence: SequenceOf[object] = (),
            all: SequenceOf[object] = (),
            any: SequenceOf[object] = (),
            count: SequenceOf[object] = (),
            absence: SequenceOf[object] = (),
            at_least: int | None = None,
            by: str | SequenceOf[str] = (),
            within: object = None,
            timestamp: str | None = None,
            lateness: object = None,
        ) -> None: ...

    @property
    def pattern(self) -> str:
        """Return the name of its pattern."""
        return next(name for name in PATTERNS if getattr(self, name))

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the pattern: the triggers that it counts or awaits, each with its condition."""
        parts: tuple[Part, ...] = getattr(self, self.pattern)
        return parts

    @model_validator(mode="after")
    def _relations(self) -> Self:
        patterns = [name for name in PATTERNS if getattr(self, name)]
        if len(patterns) != 1:
            raise Wrong(
                f"has {' and '.join(patterns) or 'no pattern'}",
                f"Write exactly one of {', '.join(PATTERNS)}: sequence=['shop.placed', 'shop.paid'].",
            )
        pattern, parts = patterns[0], self.parts
        if pattern in ("sequence", "all", "any") and len(parts) < 2:
            raise Wrong(
                f"has one part, and {pattern} takes at least two",
                "Write several triggers, or count=[...] with at_least.",
            )
        if pattern == "count" and len(parts) != 1:
            raise Wrong(
                f"has {len(parts)} parts, and count takes exactly one", "Write one trigger, or all=[...]."
            )
        if pattern == "absence" and len(parts) != 2:
            raise Wrong(
                f"has {len(parts)} parts, and absence takes exactly two",
                "Write two triggers: absence=['shop.placed', 'shop.paid'] matches an order that is placed and not paid.",
            )
        self._check_numbers(pattern, parts)
        if (self.timestamp is None) != (self.lateness is None):
            raise Wrong(
                "has only one of timestamp and lateness", "Write both: timestamp='payload.at', lateness='1m'."
            )
        self._check_parts(parts)
        return self

    def _check_numbers(self, pattern: str, parts: tuple[Part, ...]) -> None:
        if (self.within or 0) + (self.lateness or 0) > LONGEST_S:
            raise Wrong("has within and lateness, which add up to more than a day", "Write shorter times.")
        if pattern == "count" and (self.at_least or 1) < 2:
            raise Wrong("has at_least below 2", "Write at_least=5.")
        if pattern == "any" and (self.at_least or 1) > len(parts):
            raise Wrong(f"needs {self.at_least} of {len(parts)} parts", "Write a smaller at_least.")
        if pattern not in ("count", "any") and self.at_least is not None:
            raise Wrong(f"has at_least with {pattern}", "Leave at_least out: every part is needed.")
        is_of_one = pattern == "any" and (self.at_least or 1) == 1
        if not is_of_one and self.within is None:
            raise Wrong("has no length", "Add the time: within='1h'.")
        if is_of_one and self.within is not None:
            raise Wrong(
                "has within, although each event is a match by itself", "Leave within out, or set at_least."
            )

    def _check_parts(self, parts: tuple[Part, ...]) -> None:
        names = [part.name for part in parts if part.name]
        if len(set(names)) < len(names):
            raise Wrong("gives two parts the same name", "Write different names.")
        paths: dict[str, tuple[str, ...]] = {}
        for part in parts:
            if part.by and len(part.by) != len(self.by):
                raise Wrong(
                    f"has {len(self.by)} paths in by, but one of its parts has {len(part.by)}",
                    "Write the same number of paths, in the same order.",
                )
            if paths.setdefault(part.trigger, part.by) != part.by:
                raise Wrong(
                    f"has parts of {part.trigger} with different `by`",
                    "An event has one key: write the same `by` in these parts.",
                )
        if self.pattern == "absence" and parts[1].name:
            raise Wrong(
                "names the absent part", "Remove the name of this part: an absent event cannot be named."
            )
