"""Schemas that are made for one keyword, and values that are made for a schema: most fit, or miss by one step.

Every choice is asked of a `random.Random`. A test gives one of hypothesis, whose choices shrink; a count of cases gives a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

NAMES = ("a", "b", "ab", "c", "b1")
PATTERNS: Mapping[str, tuple[str, ...]] = {
    "^a": ("a", "ab"), "b$": ("b", "ab"), "[0-9]": ("b1", "7"), "^[a-c]{2}$": ("ab", "cc"), "c": ("c", "cc"),
}  # fmt: skip
"""Patterns that mean the same in Python and in Rust, each with texts that it is in."""
FORMATS: Mapping[str, tuple[str, ...]] = {
    "date": ("2030-01-02", "2030-13-01"), "date-time": ("2030-01-02T00:00:00Z", "2030-01-02 25:00"),
    "time": ("10:00:00", "25:00"), "uuid": ("00000000-0000-0000-0000-000000000007", "0-0"),
    "ipv4": ("10.0.0.1", "10.0.0.256"), "ipv6": ("::1", "::g"), "email": ("a@b", "b"),
}  # fmt: skip
"""Formats, each with a text that is of it and one that is not. `email` describes and does not refuse."""
NUMBERS = (0, 1, -1, 2, 3, 0.0, 1.0, 1.5, -2.5, 0.1, 2**53, 2.0**53, 1e300, 2.0**1000)
TEXTS = ("", "a", "ab", "abc", "b1", "cc", "\u00e4\U0001f600", "1", "2030-01-02")
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
DEFINITIONS = ("#/$defs/p", "#/$defs/q", "#/$defs/r~1s", "#/$defs/q/properties/a", "#/$defs/l/anyOf/1")


def document(draw: Random, keyword: str) -> dict[str, Any]:
    """Make a schema document in which this keyword decides something: at the top, or a few parts below it."""
    part = KEYWORDS[keyword](draw, 2)
    for _ in range(draw.choice((0, 0, 0, 1, 1, 2))):
        if draw.random() < 0.5:
            part = {**_part(draw, 1), **part}
        part = draw.choice(_AROUND)(draw, part)
    if draw.random() < 0.15:
        part = {"properties": {"a": part, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#"}}}
    return {**part, "$defs": _definitions(draw)}


def _definitions(draw: Random) -> dict[str, Any]:
    """Make the targets of references. They lead on by properties or items, and never in a circle at the same value."""
    return {
        "p": _scalar(draw),
        "q": {
            **_scalar(draw),
            "properties": {"a": {"$ref": "#/$defs/q"}, "b": {"$ref": "#/$defs/p"}},
            "items": {"$ref": "#/$defs/q"},
        },
        "r/s": draw.choice((True, False, {}, {"required": ["a"]}, {"type": "array"})),
        "l": {"anyOf": [{"type": "null"}, {"minLength": 2, "minimum": 2}]},
    }


_AROUND: Sequence[Callable[[Random, Any], dict[str, Any]]] = (
    lambda draw, part: {"items": part},
    lambda draw, part: {"properties": {draw.choice(NAMES): part}},
    lambda draw, part: {"allOf": [part, _scalar(draw)]},
    lambda draw, part: {"anyOf": [part, _scalar(draw)]},
    lambda draw, part: {"not": part},
    lambda draw, part: {"prefixItems": [True, part]},
    lambda draw, part: {"additionalProperties": part},
    lambda draw, part: {"allOf": [part], "unevaluatedProperties": False},
)  # fmt: skip


def _part(draw: Random, depth: int) -> dict[str, Any]:
    """Make a schema of one or two keywords."""
    part: dict[str, Any] = {}
    for _ in range(draw.randint(1, 2)):
        part = {**part, **KEYWORDS[draw.choice(_ALL if depth > 0 else _SCALARS)](draw, depth - 1)}
    return part


def _scalar(draw: Random) -> dict[str, Any]:
    return _part(draw, 0)


def _sub(draw: Random, depth: int) -> Any:
    """Make a schema to stand inside another one."""
    return draw.choice((True, False)) if draw.random() < 0.15 else _part(draw, depth)


def _branches(draw: Random, depth: int) -> list[Any]:
    return [_sub(draw, depth) for _ in range(draw.randint(1, 3))]


def _named(draw: Random, depth: int) -> dict[str, Any]:
    return {name: _sub(draw, depth) for name in draw.sample(NAMES, draw.randint(1, 2))}


def _names(draw: Random) -> list[str]:
    return draw.sample(NAMES, draw.randint(0, 2))


def _value(draw: Random, depth: int = 1) -> Any:
    """Make any value."""
    kind = draw.randint(0, 6 if depth else 4)
    if kind < 2:
        return draw.choice(NUMBERS)
    if kind < 4:
        return draw.choice(TEXTS)
    if kind == 4:
        return draw.choice((None, True, False, [], {}))
    if kind == 5:
        return [_value(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    return {name: _value(draw, depth - 1) for name in draw.sample(NAMES, draw.randint(1, 2))}


def _with(word: str, make: Callable[[Random, int], Any]) -> Callable[[Random, int], dict[str, Any]]:
    return lambda draw, depth: {word: make(draw, depth)}


def _count(draw: Random, depth: int) -> int:
    return draw.randint(0, 3)


def _bound(draw: Random, depth: int) -> Any:
    return draw.choice((-1, 0, 1, 2, 1.5, 1.0))


def _choices(draw: Random, depth: int) -> list[Any]:
    choices = [_value(draw) for _ in range(draw.randint(1, 3))]
    return [*choices, {"a": 1, "b": [2]}] if draw.random() < 0.3 else choices


def _type(draw: Random, depth: int) -> Any:
    return draw.choice(TYPES) if draw.random() < 0.6 else draw.sample(TYPES, draw.randint(1, 3))


def _contains(word: str) -> Callable[[Random, int], dict[str, Any]]:
    def make(draw: Random, depth: int) -> dict[str, Any]:
        part = {"contains": _sub(draw, depth)}
        for bound in ("minContains", "maxContains"):
            if word == bound or draw.random() < 0.3:
                part[bound] = draw.randint(0, 2)
        return part

    return make


def _if(word: str) -> Callable[[Random, int], dict[str, Any]]:
    def make(draw: Random, depth: int) -> dict[str, Any]:
        part = {"if": _sub(draw, depth)}
        for branch in ("then", "else"):
            if word == branch or draw.random() < 0.5:
                part[branch] = _sub(draw, depth)
        return part

    return make


def _items(draw: Random, depth: int) -> dict[str, Any]:
    part = {"items": _sub(draw, depth)}
    return {**part, "prefixItems": _branches(draw, depth)} if draw.random() < 0.5 else part


def _additional(draw: Random, depth: int) -> dict[str, Any]:
    part: dict[str, Any] = {"additionalProperties": _sub(draw, depth)}
    if draw.random() < 0.6:
        part["properties"] = _named(draw, depth)
    if draw.random() < 0.4:
        part["patternProperties"] = {draw.choice(tuple(PATTERNS)): _sub(draw, depth)}
    return part


def _unevaluated(word: str, inner: Sequence[str]) -> Callable[[Random, int], dict[str, Any]]:
    """Make the keyword beside keywords that look at names or items, in the same part or in its branches."""

    def looks(draw: Random, depth: int) -> dict[str, Any]:
        part = KEYWORDS[draw.choice(inner)](draw, 0)
        if depth > 0 and draw.random() < 0.2:
            part[word] = draw.choice((True, False, _scalar(draw)))
        return part

    def make(draw: Random, depth: int) -> dict[str, Any]:
        part: dict[str, Any] = {word: draw.choice((False, False, _scalar(draw)))}
        for _ in range(draw.randint(0, 2)):
            around = draw.choice(("", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "$ref"))
            if around == "":
                part.update(looks(draw, depth))
            elif around == "if":
                part.update(
                    {"if": looks(draw, depth), "then": looks(draw, depth), "else": looks(draw, depth)}
                )
            elif around == "dependentSchemas":
                part[around] = {draw.choice(NAMES): looks(draw, depth)}
            elif around == "$ref":
                part[around] = draw.choice(("#/$defs/q", "#/$defs/r~1s"))
            else:
                part[around] = [looks(draw, depth) for _ in range(draw.randint(1, 2))]
        return part

    return make


KEYWORDS: Mapping[str, Callable[[Random, int], dict[str, Any]]] = {
    "type": _with("type", _type),
    "enum": _with("enum", _choices),
    "const": _with("const", lambda draw, depth: _value(draw)),
    "pattern": _with("pattern", lambda draw, depth: draw.choice(tuple(PATTERNS))),
    "format": _with("format", lambda draw, depth: draw.choice(tuple(FORMATS))),
    "multipleOf": _with("multipleOf", lambda draw, depth: draw.choice((1, 2, 3, 0.5, 1.0, 1.5, 2.0**-1000))),
    **{word: _with(word, _bound) for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    **{
        word: _with(word, _count)
        for word in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    },
    "uniqueItems": _with("uniqueItems", lambda draw, depth: draw.random() < 0.9),
    "required": _with("required", lambda draw, depth: _names(draw)),
    "dependentRequired": _with("dependentRequired", lambda draw, depth: {draw.choice(NAMES): _names(draw)}),
    "$ref": _with("$ref", lambda draw, depth: draw.choice(DEFINITIONS)),
    "properties": _with("properties", _named),
    "patternProperties": _with(
        "patternProperties", lambda draw, depth: {draw.choice(tuple(PATTERNS)): _sub(draw, depth) for _ in range(2)}
    ),
    "additionalProperties": _additional,
    "propertyNames": _with("propertyNames", _sub),
    "dependentSchemas": _with("dependentSchemas", _named),
    "items": _items,
    "prefixItems": _with("prefixItems", _branches),
    **{word: _contains(word) for word in ("contains", "minContains", "maxContains")},
    **{word: _with(word, _branches) for word in ("allOf", "anyOf", "oneOf")},
    "not": _with("not", _sub),
    **{word: _if(word) for word in ("if", "then", "else")},
    "unevaluatedProperties": _unevaluated(
        "unevaluatedProperties", ("properties", "patternProperties", "additionalProperties", "required", "type")
    ),
    "unevaluatedItems": _unevaluated(
        "unevaluatedItems", ("items", "prefixItems", "contains", "minContains", "minItems", "type")
    ),
}  # fmt: skip
"""For each keyword, a function that makes a part with it, and with keywords beside it that change what it means."""
_SCALARS = tuple(KEYWORDS)[: tuple(KEYWORDS).index("$ref")]
_ALL = tuple(KEYWORDS)


class Values:
    """Values that are made for a schema document."""

    def __init__(self, draw: Random, root: Mapping[str, Any]) -> None:
        self._draw, self._root = draw, root

    def value(self, part: Any = None, depth: int = 0) -> Any:
        """Make a value that is likely to fit `part`, which is the whole document by default, or to miss it by one step."""
        draw = self._draw
        part = self._root if part is None else part
        if not isinstance(part, Mapping) or depth > 4 or draw.random() < 0.06:
            return _value(draw)
        part = self._merged(part)
        choices = [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
        if choices and draw.random() < 0.7:
            return self._alike(draw.choice(choices))
        match self._kind(part):
            case "object":
                return self._object(part, depth)
            case "array":
                return self._array(part, depth)
            case "string":
                return self._text(part)
            case "integer" | "number":
                return self._number(part)
            case "boolean":
                return draw.random() < 0.5
        return None

    def _merged(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """Put the keywords of some of the parts that apply to the same value into one part."""
        draw, whole = self._draw, dict(part)
        inner: list[Any] = list(part.get("allOf", ()))
        inner += [draw.choice(part[word]) for word in ("anyOf", "oneOf") if word in part]
        inner += [part[word] for word in ("if", "then", "else") if word in part and draw.random() < 0.5]
        inner += [sub for sub in part.get("dependentSchemas", {}).values() if draw.random() < 0.5]
        if "not" in part and draw.random() < 0.6:
            inner.append(part["not"])
        if "$ref" in part:
            inner.append(target(self._root, part["$ref"]))
        for sub in inner:
            if not isinstance(sub, Mapping):
                continue
            for word, value in self._merged(sub).items():
                if isinstance(value, Mapping) and isinstance(whole.get(word), Mapping):
                    whole[word] = {**value, **whole[word]}
                elif word not in whole or draw.random() < 0.3:
                    whole[word] = value
        return whole

    def _kind(self, part: Mapping[str, Any]) -> str:
        draw = self._draw
        declared = part.get("type", ())
        kinds = [declared] if isinstance(declared, str) else list(declared)
        if not kinds or draw.random() < 0.1:
            kinds = [kind for word in part for kind in _KINDS.get(word, ())] or list(TYPES)
        return str(draw.choice(kinds))

    def _alike(self, value: Any) -> Any:
        """Change a value a little, or write it in another way."""
        draw = self._draw
        if draw.random() < 0.5:
            return value
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int | float):
            return draw.choice((float(value), value == 1, value + 1, str(value)))
        if isinstance(value, list):
            return [self._alike(item) for item in value] if value else {}
        if isinstance(value, dict):
            return {name: self._alike(item) for name, item in reversed(value.items())}
        return f"{value}a" if isinstance(value, str) else False

    def _object(self, part: Mapping[str, Any], depth: int) -> dict[str, Any]:
        draw = self._draw
        named, patterns = part.get("properties", {}), part.get("patternProperties", {})
        names = [name for name in part.get("required", ()) if draw.random() < 0.9]
        names += [name for name in named if draw.random() < 0.7]
        names += [draw.choice(PATTERNS[pattern]) for pattern in patterns if draw.random() < 0.7]
        for name, others in part.get("dependentRequired", {}).items():
            if draw.random() < 0.8:
                names += [name, *(other for other in others if draw.random() < 0.8)]
        names += [name for name in part.get("dependentSchemas", {}) if draw.random() < 0.8]
        wanted = self._size(part, "minProperties", "maxProperties", len(set(names)))
        names += draw.sample(NAMES, min(max(wanted - len(set(names)), 0), len(NAMES)))
        if draw.random() < 0.2:
            names.append(draw.choice(NAMES))
        made: dict[str, Any] = {}
        for name in dict.fromkeys(names):
            fitting = [named[name]] if name in named else []
            fitting += [sub for pattern, sub in patterns.items() if name in PATTERNS[pattern]]
            fitting = fitting or [part[word] for word in _OTHERS if word in part]
            made[name] = self.value(draw.choice(fitting), depth + 1) if fitting else _value(draw)
        return made

    def _array(self, part: Mapping[str, Any], depth: int) -> list[Any]:
        draw, prefix = self._draw, part.get("prefixItems", ())
        size = self._size(part, "minItems", "maxItems", len(prefix) + draw.randint(-1, 2))
        if "uniqueItems" in part:
            size = max(size, 2)
        if "contains" in part:
            size = max(
                size,
                draw.choice((0, *(part[word] for word in _CONTAINS if word in part))) + draw.randint(0, 1),
            )
        made: list[Any] = []
        for index in range(max(size, 0)):
            others = [part[word] for word in ("items", "contains", "unevaluatedItems") if word in part]
            if index < len(prefix) and draw.random() < 0.9:
                made.append(self.value(prefix[index], depth + 1))
            elif draw.random() < 0.1:
                made.append(draw.choice(NAMES))
            elif made and draw.random() < 0.3:
                made.append(self._alike(draw.choice(made)))
            else:
                made.append(self.value(draw.choice(others), depth + 1) if others else _value(draw))
        return made

    def _size(self, part: Mapping[str, Any], least: str, most: str, usual: int) -> int:
        bounds = [part[word] + step for word in (least, most) if word in part for step in (-1, 0, 1)]
        return int(self._draw.choice(bounds)) if bounds and self._draw.random() < 0.8 else usual

    def _text(self, part: Mapping[str, Any]) -> str:
        draw = self._draw
        if "format" in part and draw.random() < 0.8:
            return draw.choice(FORMATS[part["format"]])
        text = draw.choice(PATTERNS[part["pattern"]] if "pattern" in part and draw.random() < 0.7 else TEXTS)
        size = self._size(part, "minLength", "maxLength", len(text))
        return text[: max(size, 0)] + draw.choice("\u00e4b\U0001f600") * (size - len(text))

    def _number(self, part: Mapping[str, Any]) -> Any:
        draw = self._draw
        near = [part[word] + step for word in _BOUNDS if word in part for step in (-1, -0.5, 0, 0.5, 1)]
        if "multipleOf" in part:
            near += [part["multipleOf"] * times for times in (0, 1, 2, -3, 0.5)]
        number = draw.choice(near) if near and draw.random() < 0.9 else draw.choice(NUMBERS)
        return (
            int(number) if abs(number) <= 2**53 and number == int(number) and draw.random() < 0.5 else number
        )


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_CONTAINS = ("minContains", "maxContains")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_OF_OBJECTS = (
    "properties", "patternProperties", "required", "dependentRequired", "dependentSchemas", *_OTHERS, "propertyNames",
    "minProperties", "maxProperties",
)  # fmt: skip
_OF_ARRAYS = (
    "items", "prefixItems", "contains", *_CONTAINS, "uniqueItems", "unevaluatedItems", "minItems", "maxItems",
)  # fmt: skip
_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_OBJECTS, ("object",)),
    **dict.fromkeys(_OF_ARRAYS, ("array",)),
    **dict.fromkeys(("pattern", "format", "minLength", "maxLength"), ("string",)),
    **dict.fromkeys((*_BOUNDS, "multipleOf"), ("integer", "number")),
}
"""The types of the values that a keyword is about."""


def target(root: Any, reference: str) -> Any:
    """Return the target of a local reference."""
    node = root
    for step in reference.split("/")[1:]:
        node = node[int(step)] if isinstance(node, list) else node[step.replace("~1", "/").replace("~0", "~")]
    return node
