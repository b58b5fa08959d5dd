"""The conversion of StackStorm rules: criteria become conditions, and parameters become templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.expressions import condition as compile_condition
from penstock_import.action_chain import cast, rendered_breaks, texts_within
from penstock_import.literal_casts import cast_literal
from penstock_import.orquesta_expressions import as_expression, block_text, template
from penstock_import.orquesta_names import NOWHERE, OF_CONFIGURATION, Surroundings, key_of_store
from penstock_import.regular_expressions import regular_expression
from penstock_import.wanted_text import NotMapped, Ours, literal, member

_STEP = re.compile(r"""\.([A-Za-z_@][A-Za-z0-9_@-]*)|\[(\d+)\]|\[(?:'([^'\\*]+)'|"([^"\\*]+)")\]""")
_PATH = re.compile(rf"trigger((?:{_STEP.pattern})+)")
_ALIASES = {
    "equals": "eq",
    "nequals": "neq",
    "iequals": "ieq",
    "lessthan": "lt",
    "greaterthan": "gt",
    "inside": "in",
    "ninside": "nin",
}
_FORMS: dict[str, str] = {
    "eq": "{0} == {1}",
    "neq": "{0} != {1}",
    "ieq": "{0} is string and {0}.lower() == {1}.lower()",
    "lt": "{0} < {1}",
    "gt": "{0} > {1}",
    "contains": "{1} in {0}",
    "ncontains": "{1} not in {0}",
    "icontains": "{0} is string and {1}.lower() in {0}.lower()",
    "incontains": "{0} is string and {1}.lower() not in {0}.lower()",
    "startswith": "{0} is string and {0}.startswith({1})",
    "istartswith": "{0} is string and {0}.lower().startswith({1}.lower())",
    "endswith": "{0} is string and {0}.endswith({1})",
    "iendswith": "{0} is string and {0}.lower().endswith({1}.lower())",
    "in": "{0} in {1}",
    "nin": "{0} not in {1}",
}
_OTHER_PATH = re.compile(r"([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*", re.ASCII)
"""A path without indexes, quotes and stars."""
_OTHER_ROOTS = frozenset({"trigger", "system", "user", "st2kv", "parent", "where", "wherenot"})
"""The first words of a path that lead to a value, or that StackStorm's language of paths reserves."""
_WORD = re.compile(r"(?:\.\*)?([A-Za-z0-9 _/:@-]+)(?:\.\*)?")
"""A word without special characters of regular expressions. What a search skips around it changes nothing."""
_OF_TEXT = frozenset({"ieq", "icontains", "incontains", "startswith", "istartswith", "endswith", "iendswith"})
_OF_EMPTY = frozenset({"neq", "nin", "nexists"})
"""The operators that hold for a missing value. For an empty payload StackStorm evaluates none."""


def condition_of(criteria: Sequence[tuple[str, Any]], root: str = "trigger") -> str:
    """Return all criteria of a rule as one condition. Raises NotMapped, with the path of the criterion, for a criterion
    without an equivalent in Penstock."""
    conditions = []
    kinds = []
    for path, spec in criteria:
        try:
            conditions.append(criterion(path, spec, root))
        except NotMapped as reason:
            raise NotMapped(f"{path}: {reason}") from None
        kind = str(spec.get("type")).lower()
        kinds.append(_ALIASES.get(kind, kind))
    if conditions and set(kinds) <= _OF_EMPTY:
        conditions.insert(0, "payload | length > 0")
    return " and ".join(f"({condition})" for condition in conditions)


def criterion(path: str, spec: Any, root: str = "trigger") -> str:
    """Return one criterion as a condition. `root` is the path in StackStorm that corresponds to the payload. In
    StackStorm, a missing value is null, and an operator that fails does not hold. Raises NotMapped for a part without
    an equivalent in Penstock."""
    if not isinstance(spec, dict):
        raise NotMapped("a criterion is a mapping")
    unknown = spec.keys() - {"type", "pattern"}
    if unknown:
        raise NotMapped(f"{', '.join(sorted(map(str, unknown)))} of a criterion")
    if "type" not in spec:
        return "false"
    if path.split("#", 1)[0] == "trigger":
        return _of_whole_event(spec, root)
    return _condition(_value(path, root), spec)


def reads_nothing(path: str) -> bool:
    """Return whether the path of a criterion leads to no value in any event, since it does not begin with `trigger`."""
    match = _OTHER_PATH.fullmatch(path.split("#", 1)[0])
    return match is not None and match[1] not in _OTHER_ROOTS


def _of_whole_event(spec: dict[str, Any], root: str) -> str:
    """Return a criterion on the whole payload of StackStorm, for which an empty payload never matches. Raises NotMapped if
    only a part of that payload is the payload in Penstock."""
    if root == "trigger":
        return f"payload | length > 0 and ({_condition('payload', spec)})"
    if spec["type"] in ("exists", "nexists"):
        return "true" if spec["type"] == "exists" else "false"
    raise NotMapped(f"the whole event, of which only {root} is the payload in Penstock")


def _condition(value: str, spec: dict[str, Any]) -> str:
    pattern, kind = spec.get("pattern"), str(spec["type"]).lower()
    kind = _ALIASES.get(kind, kind)
    if isinstance(pattern, str) and any(mark in pattern for mark in ("{{", "{%", "{#")):
        raise NotMapped("a pattern with an expression in it")
    pattern = rendered_breaks(pattern) if isinstance(pattern, str) else pattern
    if kind == "exists":
        return _checked(f"{value} is not none")
    if kind == "nexists":
        return _checked(f"{value} is none")
    if pattern is None and kind in (*_FORMS, *_PATTERNS):
        return _checked(f"{value} is not none") if kind == "neq" else "false"
    if kind in _PATTERNS:
        return _checked(_PATTERNS[kind](value, pattern))
    if kind not in _FORMS:
        raise NotMapped(f"the operator {spec['type']}")
    if kind in _OF_TEXT and not isinstance(pattern, str):
        return "false"  # StackStorm's operator fails for such a pattern, so the rule never matches
    return _checked(_FORMS[kind].format(value, literal(pattern).text))


def _value(path: str, root: str) -> str:
    path = path.split("#", 1)[0]
    below = root.split(".")[1:]
    if below and path == root:
        return "payload"
    if reads_nothing(path):
        return "none"
    match = _PATH.fullmatch(path)
    if match is None:
        raise NotMapped("a path with parts that are neither names nor numbers")
    steps = [(name or single or double, number) for name, number, single, double in _STEP.findall(match[1])]
    if [name for name, _ in steps[: len(below)]] != below:
        raise NotMapped(f"a part of the event other than its {below[-1]}")
    text = "payload"
    for name, number in steps[len(below) :]:
        text = f"{text}[{number}]" if number else member(text, name)
    return "payload" if text == "payload" else f"({text} | default(none))"


def _wildcard(value: str, pattern: Any) -> str:
    if not isinstance(pattern, str) or any(mark in pattern for mark in "?["):
        raise NotMapped("a wildcard with other characters than stars")
    inner = pattern.strip("*")
    if "*" in inner:
        raise NotMapped("a wildcard with a star in its middle")
    text = literal(inner).text
    if pattern.startswith("*") and pattern.endswith("*"):
        return f"{value} is string and {text} in {value}"
    if pattern.startswith("*"):
        return f"{value} is string and {value}.endswith({text})"
    if pattern.endswith("*"):
        return f"{value} is string and {value}.startswith({text})"
    return f"{value} is string and {value} == {text}"


def _iregex(value: str, pattern: Any) -> str:
    """Return a condition for `iregex` with a plain word. Its `re` takes two letters beside those of ASCII for an `i`, and
    one for an `s`. Their small letters differ."""
    if not isinstance(pattern, str):
        return "false"  # StackStorm's operator fails for such a pattern, so the rule never matches
    if (match := _WORD.fullmatch(pattern)) is None:
        raise NotMapped("a regular expression without regard to case, of more than a plain word")
    lowered = f'{value}.replace("\u0130", "i").replace("\u0131", "i").replace("\u017f", "s").lower()'
    return f"{value} is string and {literal(match[1].lower()).text} in {lowered}"


def _regex(value: str, pattern: Any, at_start: bool = False) -> str:
    """Return a condition for `regex`, or with `at_start` for `matchregex`. Dots of the latter stand for newlines too."""
    if not isinstance(pattern, str):
        return "false"  # StackStorm's operator fails for such a pattern, so the rule never matches
    condition = regular_expression(value, pattern, at_start=at_start, dots_match_newlines=at_start)
    return f"{value} is string and ({condition})"


_PATTERNS: dict[str, Callable[[str, Any], str]] = {
    "matchwildcard": _wildcard,
    "regex": _regex,
    "iregex": _iregex,
    "matchregex": lambda value, pattern: _regex(value, pattern, at_start=True),
}


class _RuleNames:
    """The names in a rule: the payload of its trigger, keys of the store, and the configuration of its action's pack. A
    timer has the root "", and no payload."""

    takes_several_lines = True

    def __init__(self, root: str, surroundings: Surroundings, *, is_rendered: bool = True) -> None:
        self._below, self._surroundings = root.split(".")[1:], surroundings
        self._has_payload = bool(root)
        self.drops_comments = is_rendered

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the expression for a name, and the number of steps that it covers. Raises NotMapped for a part without
        an equivalent in Penstock."""
        depth = len(self._below)
        if function == "trigger" and not self._has_payload:
            raise NotMapped("a timer has no payload")
        if function == "config_context" and argument is None and steps and self._surroundings.pack:
            if self._surroundings.note_key is None:
                raise NotMapped("the configuration of the pack beside a block of Jinja")
            key = self._surroundings.note_key(f"{OF_CONFIGURATION}{'.'.join(steps)}")
            return Ours(f"secrets.{key}", "secret"), len(steps)
        if function == "trigger" and argument is None and list(steps[:depth]) == self._below:
            return Ours("payload", "" if len(steps) > depth else "dict"), depth
        if function == "trigger" and argument is None and depth:
            raise NotMapped(_beside_payload(steps))
        if function == "st2kv" and argument is None and len(steps) >= 2:
            return key_of_store(self._surroundings, ".".join(steps)), len(steps)
        raise NotMapped(f"`{function}` has no equivalent in Penstock")


def _beside_payload(steps: Sequence[str]) -> str:
    """Return the reason why a part of a webhook's event is not mapped: only its body is the payload here."""
    if not steps:
        return "the whole event, of which only trigger.body is the payload in Penstock"
    if steps[0] == "headers":
        return "a part of the event other than its body"
    return f"the event of a webhook has only `body` and `headers`, and no `{steps[0]}`"


def parameters(
    value: Any, kind: Any = None, root: str = "trigger", surroundings: Surroundings = NOWHERE
) -> Any:
    """Return a parameter of a rule's action with the type that the action declares. `root` is the path in StackStorm that
    corresponds to the payload, and empty for a timer. `surroundings.pack` is empty if the action is of another pack. Raises
    NotMapped for a part without an equivalent in Penstock."""
    if isinstance(value, str) and "<%" in value:
        raise NotMapped("YAQL, which a rule of StackStorm takes as plain text")
    is_rendered = "{{" in str(value) or "{%" in str(value)  # StackStorm renders no other value
    if isinstance(value, str) and is_rendered:
        value = rendered_breaks(value)
    if isinstance(value, str) and "{%" in value:
        return block_text(value, _RuleNames(root, NOWHERE), kind)
    names = _RuleNames(root, surroundings, is_rendered=is_rendered)
    if isinstance(value, dict | list):
        return texts_within(value, names, keeps_bare_names=True)
    mapped = template(value, names)
    if isinstance(value, str) and isinstance(mapped, str) and "{{" in value:
        return cast(mapped, as_expression(value, names), kind)
    return mapped if isinstance(value, str) and mapped != value else cast_literal(mapped, kind)


def _checked(condition: str) -> str:
    try:
        compile_condition(condition)
    except DefinitionError as error:
        raise NotMapped(f"Penstock refuses it: {error}") from None
    return condition
