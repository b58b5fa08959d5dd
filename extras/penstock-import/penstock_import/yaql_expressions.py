"""The translation of YAQL expressions to Penstock's, by syntax tree. If YAQL returns a value, the translation returns
the same value. A part without an equivalent is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock_import import yaql_parser as tree
from penstock_import.orquesta_names import ITEMS, RESULTS, whole_results
from penstock_import.wanted_text import NotMapped, Ours, literal, member

_MAX_LENGTH = 6_000
_SIMPLE = frozenset({"int", "number", "str", "bool"})
_WHOLE = frozenset({"list", "lazy", "dict"})
_NOT_TEXT = "none.this_is_no_text"
"""An expression that fails with a telling name."""


class Names(Protocol):
    """The names that an expression sees at its place."""

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the expression for a name such as `ctx()` or `result()`, and the number of the following steps that it
        covers. Raises NotMapped for a part without an equivalent in Penstock."""


def translate(text: str, names: Names) -> Ours:
    """Translate a YAQL expression, without its `<% %>`. Raises NotMapped for a part without an equivalent in
    Penstock."""
    try:
        ours = _Writer(names).write(tree.parse(text))
    except tree.YaqlSyntaxError as error:
        raise NotMapped(str(error)) from None
    if len(ours.text) > _MAX_LENGTH:
        raise NotMapped("it becomes too long")
    return ours


class _Writer:
    def __init__(self, names: Names) -> None:
        self._names = names

    def write(self, node: tree.Expr) -> Ours:
        match node:
            case tree.Const(value):
                return literal(value)
            case tree.Word(name):
                return literal(name)
            case tree.Variable(name):
                raise NotMapped(f"`{name}` stands outside of select and where")
            case tree.Unary(operator, operand):
                return self._unary(operator, operand)
            case tree.Index(value, arguments):
                return self._index(self.write(value), arguments)
            case tree.ListOf(items):
                return self._list(items)
            case tree.MapOf(pairs):
                return self._mapping(pairs)
            case tree.Binary("." | "?."):
                return self._chain(node)
            case tree.Binary(operator, first, second):
                return self._binary(operator, self.write(first), self.write(second))
            case tree.Call():
                return self._call(node)

    def _mapping(self, pairs: Sequence[tuple[tree.Expr, tree.Expr]]) -> Ours:
        written = ", ".join(f"{self.write(key).text}: {_kept(self.write(value))}" for key, value in pairs)
        return Ours(f"{{{written}}}", "dict")

    def _list(self, items: Sequence[tree.Expr]) -> Ours:
        return Ours(f"[{', '.join(_kept(self.write(item)) for item in items)}]", "list")

    def _unary(self, operator: str, operand: tree.Expr) -> Ours:
        ours = self.write(operand)
        if operator == "not":
            return Ours(f"(not {_true_or_false(ours)})", "bool")
        return Ours(f"({operator}{ours.text})", ours.kind if ours.kind in ("int", "number") else "")

    # -- chains of members and methods ----------------------------------------------------------------------------

    def _chain(self, node: tree.Expr) -> Ours:
        parts: list[tuple[str, tree.Expr]] = []
        while isinstance(node, tree.Binary) and node.operator in (".", "?."):
            parts.insert(0, (node.operator, node.second))
            node = node.first
        covered = 0
        if isinstance(node, tree.Call):
            steps: list[str] = []
            for operator, part in parts:
                if operator != "." or not isinstance(part, tree.Word):
                    break
                steps.append(part.name)
            method = parts[0][1]
            if (
                node.name == "ctx"
                and not node.arguments
                and isinstance(method, tree.Call)
                and method.name == "get"
            ):
                return self._got_of_context(method, parts[1:])
            value, covered = self._root_or_call(node, steps)
            if value.kind in ITEMS:
                value, covered = self._items(value, parts, covered)
            elif value.kind == RESULTS:
                fails_for_mapping = covered < len(parts) and _is_of_list(parts[covered][1])
                value = Ours(value.text, "list") if fails_for_mapping else whole_results(value)
        else:
            value = self.write(node)
        return self._steps(value, parts[covered:])

    def _items(self, value: Ours, parts: Sequence[tuple[str, tree.Expr]], covered: int) -> tuple[Ours, int]:
        """Return the value of `task(x).result.items` with the part behind it, and the number of parts that it covers. Each
        entry there is a mapping of a status and a result, and here it is the result. Raises NotMapped."""
        path, names = ITEMS[value.kind], [part for _, part in parts[covered:]]
        match names[:1]:
            case [tree.Call(name="select", arguments=[by], pairs=[])]:
                below = _path_below_item(by)
                if below is not None and f"{below}.".startswith(f"{path}."):
                    inner = below.removeprefix(path).removeprefix(".")
                    mapped = f"map(attribute={literal(inner).text}) | list" if inner else "list"
                    return Ours(f"({value.text} | {mapped})", "lazy"), covered + 1
            case [tree.Call(name="len" | "count", arguments=[], pairs=[])]:
                return Ours(f"({value.text} | length)", "int"), covered + 1
            case [tree.Word()]:
                words = path.split(".")
                if [part.name for part in names[: len(words)] if isinstance(part, tree.Word)] == words:
                    return Ours(f"({value.text} | list)", "lazy"), covered + len(words)
        raise NotMapped(f"the items of a task beside `select($.{path}...)`")

    def _got_of_context(self, method: tree.Call, parts: list[tuple[str, tree.Expr]]) -> Ours:
        name = _name_of(method.arguments[0]) if len(method.arguments) in (1, 2) and not method.pairs else None
        if name is None:
            raise NotMapped("ctx().get() with an expression instead of a fixed name")
        value, _ = self._names.root("ctx", name, ())
        default = self.write(method.arguments[1]) if len(method.arguments) == 2 else literal(None)
        return self._steps(Ours(f"({value.text} | default({default.text}))"), parts)

    def _steps(self, value: Ours, parts: Sequence[tuple[str, tree.Expr]]) -> Ours:
        for operator, part in parts:
            if isinstance(part, tree.Call):
                if operator == "?.":
                    value = Ours(f"({self._method(value, part).text} if {value.text} is not none else none)")
                else:
                    value = self._method(value, part)
            elif isinstance(part, tree.Word):
                if value.kind in ("list", "lazy"):
                    value = Ours(f"({value.text} | map(attribute={literal(part.name).text}) | list)", "lazy")
                elif operator == "?.":
                    value = Ours(f"({member(value.text, part.name)} if {value.text} is not none else none)")
                else:
                    value = Ours(member(value.text, part.name))
            else:
                raise NotMapped("a member that is not a name")
        return value

    def _root_or_call(self, node: tree.Call, steps: Sequence[str]) -> tuple[Ours, int]:
        if node.name in ROOTS:
            says_decrypt = node.name == "st2kv" and all(_is_decrypt(*pair) for pair in node.pairs)
            if (node.pairs and not says_decrypt) or len(node.arguments) > 1:
                raise NotMapped(f"{node.name}() with more than a name")
            name = _name_of(node.arguments[0]) if node.arguments else None
            if node.arguments and name is None:
                raise NotMapped(f"{node.name}() with an expression instead of a fixed name")
            return self._names.root(node.name, name, steps)
        return self._function(node), 0

    def _call(self, node: tree.Call) -> Ours:
        return whole_results(self._root_or_call(node, ())[0])

    # -- functions and methods ------------------------------------------------------------------------------------

    def _function(self, node: tree.Call) -> Ours:
        name, arguments = node.name, node.arguments
        if name == "switch" and not arguments:
            text = "none"
            for condition, outcome in reversed(node.pairs):
                text = (
                    f"({_kept(self.write(outcome))} if {_true_or_false(self.write(condition))} else {text})"
                )
            return Ours(text)
        if name == "dict" and not arguments:
            return self._mapping(node.pairs)
        if node.pairs:
            raise NotMapped(f"{name}() with named arguments")
        if name == "list":
            return self._list(arguments)
        if name == "coalesce" and arguments:
            written = [_kept(self.write(argument)) for argument in arguments]
            text = "none"
            for value in reversed(written):
                text = f"({value} if {value} is not none else {text})"
            return Ours(text)
        if len(arguments) == 1 and name in _CONVERSIONS:
            return _CONVERSIONS[name](self.write(arguments[0]))
        if name == "range" and len(arguments) in (1, 2):
            return Ours(f"range({', '.join(self.write(argument).text for argument in arguments)})", "lazy")
        if arguments and name in _ALSO_FUNCTIONS:
            return self._method(self.write(arguments[0]), tree.Call(name, arguments[1:]))
        raise NotMapped(f"the function {name}()")

    def _method(self, value: Ours, call: tree.Call) -> Ours:
        name, arguments = call.name, call.arguments
        if call.pairs:
            raise NotMapped(f"{name}() with named arguments")
        if name in ("select", "where") and len(arguments) == 1:
            return self._select(value, arguments[0]) if name == "select" else self._where(value, arguments[0])
        written = [self.write(argument) for argument in arguments]
        texts = ", ".join(argument.text for argument in written)
        for counts, form, kind in _METHODS.get(name, ()):
            if len(written) == counts:
                return Ours(form.format(value.text, *(argument.text for argument in written)), kind)
        if name in _OF_TEXT and len(written) in _OF_TEXT[name][1]:
            ours, _, kind = _OF_TEXT[name]
            return Ours(f"{value.text}.{ours}({texts})", kind)
        if name == "join" and len(written) == 1:
            separator, items = (value, written[0]) if value.kind == "str" else (written[0], value)
            plain = f"{items.text} | reject('string') | reject('integer') | reject('float') | list"
            return Ours(f"({items.text} | join({separator.text}) if not ({plain}) else {_NOT_TEXT})", "str")
        raise NotMapped(f"the method {name}()")

    def _select(self, value: Ours, by: tree.Expr) -> Ours:
        path = _path_below_item(by)
        if isinstance(by, tree.ListOf) and by.items:
            columns = [self._select(value, item).text for item in by.items]
            return Ours(f"({columns[0]} | zip({', '.join(columns[1:])}) | list)", "lazy")
        if isinstance(by, tree.MapOf):
            raise NotMapped("select() of a mapping: have an action return the list")
        if path is None:
            raise NotMapped("select() of more than a member")
        if not path:
            return Ours(f"({value.text} | list)", "lazy")
        return Ours(f"({value.text} | map(attribute={literal(path).text}) | list)", "lazy")

    def _where(self, value: Ours, condition: tree.Expr) -> Ours:
        if isinstance(condition, tree.Binary) and condition.operator == "and":
            return self._where(self._where(value, condition.first), condition.second)
        path, test = _path_below_item(condition), ""
        filters = ("select", "selectattr")
        if isinstance(condition, tree.Unary) and condition.operator == "not":
            path, filters = _path_below_item(condition.operand), ("reject", "rejectattr")
        elif isinstance(condition, tree.Binary) and condition.operator in _TESTS:
            path = _path_below_item(condition.first)
            other = self.write(condition.second)
            if other.kind in _WHOLE and condition.operator != "in":
                raise NotMapped("a list or a mapping compared within where()")
            test = f"{_TESTS[condition.operator]!r}, {other.text}"
        if path is None:
            raise NotMapped("where() with more than one comparison of a member")
        arguments = ", ".join(part for part in (literal(path).text if path else "", test) if part)
        return Ours(f"({value.text} | {filters[bool(path)]}({arguments}) | list)", "lazy")

    def _index(self, value: Ours, arguments: Sequence[tree.Expr]) -> Ours:
        if len(arguments) == 1 and _mentions_item(arguments[0]):
            return self._where(value, arguments[0])
        written = [self.write(argument).text for argument in arguments]
        if len(written) == 1:
            return Ours(f"{value.text}[{written[0]}]")
        if len(written) == 2:
            return Ours(f"({value.text}[{written[0]}] if {written[0]} in {value.text} else {written[1]})")
        raise NotMapped("an index of three parts")

    # -- operators ------------------------------------------------------------------------------------------------

    def _binary(self, operator: str, first: Ours, second: Ours) -> Ours:
        if operator in ("and", "or"):
            kind = "bool" if first.kind == second.kind == "bool" else ""
            return Ours(f"({_true_or_false(first)} {operator} {_kept(second)})", kind)
        if operator in ("=", "!=", "in"):
            if first.kind in _WHOLE or (operator != "in" and second.kind in _WHOLE):
                raise NotMapped("a list or a mapping that is compared as a whole")
            return Ours(f"({first.text} {_SAME.get(operator, operator)} {second.text})", "bool")
        if operator in ("<", "<=", ">", ">="):
            return Ours(_compared(operator, first, second), "bool")
        if operator in ("+", "-", "*", "/", "mod"):
            return _computed(operator, first, second)
        raise NotMapped(f"the operator {operator}")


def _compared(operator: str, first: Ours, second: Ours) -> str:
    """Return a comparison in which null is less than any other value, as in YAQL."""
    plain = f"{first.text} {operator} {second.text}"
    if first.kind in _SIMPLE and second.kind in _SIMPLE:
        return f"({plain})"
    if second.kind in _SIMPLE:
        target_action = "is none or" if operator in ("<", "<=") else "is not none and"
        return f"({first.text} {target_action} {plain})"
    if first.kind in _SIMPLE:
        target_action = "is none or" if operator in (">", ">=") else "is not none and"
        return f"({second.text} {target_action} {plain})"
    otherwise = {
        "<": f"{first.text} is none and {second.text} is not none",
        "<=": f"{first.text} is none",
        ">": f"{first.text} is not none and {second.text} is none",
        ">=": f"{second.text} is none",
    }[operator]
    return f"({plain} if {first.text} is not none and {second.text} is not none else ({otherwise}))"


def _computed(operator: str, first: Ours, second: Ours) -> Ours:
    kinds = {first.kind, second.kind}
    if "lazy" in kinds or (kinds & {"bool", "none", "dict"} and operator != "+"):
        raise NotMapped(f"{operator} of what is not a number")
    number = "int" if kinds == {"int"} else "number" if kinds <= {"int", "number"} else ""
    if operator == "/":
        if number:
            sign = "//" if number == "int" else "/"
            return Ours(f"({first.text} {sign} {second.text})", number)
        whole = f"{first.text} is integer and {second.text} is integer"
        return Ours(f"({first.text} // {second.text} if {whole} else {first.text} / {second.text})")
    if operator == "+" and not kinds & {"int", "number", "str", "list"}:
        added = f"{first.text} + {second.text}"
        return Ours(f"({first.text} | combine({second.text}) if {first.text} is mapping else {added})")
    kind = number or (
        "str" if "str" in kinds and operator == "+" else "list" if "list" in kinds and operator == "+" else ""
    )
    return Ours(f"({first.text} {'%' if operator == 'mod' else operator} {second.text})", kind)


def _kept(value: Ours) -> str:
    """Return the text of a value that becomes a part of another value. Raises NotMapped for a lazy list, which would
    stay lazy."""
    if value.kind == "lazy":
        raise NotMapped("a lazy list within another value")
    return value.text


def _true_or_false(value: Ours) -> str:
    """Return the text of a value that is used as a condition. Raises NotMapped for a lazy list, which YAQL always takes
    as true."""
    if value.kind == "lazy":
        raise NotMapped("a lazy list that is asked whether it is true")
    return value.text


def _str(value: Ours) -> Ours:
    text = value.text
    if value.kind in _WHOLE:
        raise NotMapped("the text of a list or a mapping")
    plain = f"{text} | string if {text} is string or {text} is number else {_NOT_TEXT}"
    return Ours(
        f"('null' if {text} is none else 'true' if {text} is true else 'false' if {text} is false else {plain})",
        "str",
    )


def _json(value: Ours) -> Ours:
    return Ours(f"({value.text} if {value.text} is mapping else {value.text} | fromjson)")


ROOTS = frozenset(
    {
        "ctx",
        "result",
        "item",
        "task",
        "succeeded",
        "failed",
        "completed",
        "task_status",
        "st2kv",
        "config_context",
    }
)
_SAME = {"=": "=="}
_TESTS = {"=": "eq", "!=": "ne", "in": "in"}
_IS_EMPTY = f'({{0}} is none or {{0}} == "" if {{0}} is none or {{0}} is string else {_NOT_TEXT})'
_CONVERSIONS: dict[str, Callable[[Ours], Ours]] = {
    "str": _str,
    "int": lambda value: Ours(f"(0 if {value.text} is none else {value.text} | int)", "int"),
    "float": lambda value: Ours(f"(0.0 if {value.text} is none else {value.text} | float)", "number"),
    "bool": lambda value: Ours(f"(true if {_true_or_false(value)} else false)", "bool"),
    "json": _json,
    "isEmpty": lambda value: Ours(_IS_EMPTY.format(value.text), "bool"),
    "isString": lambda value: Ours(f"({value.text} is string)", "bool"),
    "from_json_string": lambda value: Ours(f"({value.text} | fromjson)"),
    "abs": lambda value: Ours(f"({value.text} | abs)", value.kind),
    "isDict": lambda value: Ours(f"({value.text} is mapping)", "bool"),
}
_FLAT = "{0} | flatten | flatten | flatten"
_FLATTENED = f"({_FLAT} if ({_FLAT} | flatten) == ({_FLAT}) else none.lists_in_lists_in_lists)"
"""YAQL flattens lists at any depth, and Penstock one level. A deeper list fails."""
_OF_LIST = frozenset(
    {
        "any",
        "append",
        "contains",
        "count",
        "first",
        "flatten",
        "join",
        "last",
        "reverse",
        "select",
        "toList",
        "where",
    }
)
"""The methods that YAQL refuses for a mapping."""
_ALSO_FUNCTIONS = frozenset({"len"})
_METHODS: dict[str, tuple[tuple[int, str, str], ...]] = {
    "len": ((0, "({0} | length)", "int"),),
    "count": ((0, "({0} | length)", "int"),),
    "any": ((0, "({0} | length > 0)", "bool"),),
    "keys": ((0, "({0} | list)", "lazy"),),
    "values": ((0, "({0} | items | map(attribute=1) | list)", "lazy"),),
    "items": ((0, "({0} | items)", "lazy"),),
    "toList": ((0, "({0} | list)", "lazy"),),
    "first": ((0, "({0} | first)", ""), (1, "({0} | first if {0} | length > 0 else {1})", "")),
    "last": ((0, "({0} | last)", ""), (1, "({0} | last if {0} | length > 0 else {1})", "")),
    "get": ((1, "({0}[{1}] if {1} in {0} else none)", ""), (2, "({0}[{1}] if {1} in {0} else {2})", "")),
    "containsKey": ((1, "({1} in {0})", "bool"),),
    "contains": ((1, "({1} in {0})", "bool"),),
    "append": ((1, "({0} + [{1}])", "list"),),
    "set": ((2, "({0} | combine({{{1}: {2}}}))", "dict"),),
    "isEmpty": ((0, _IS_EMPTY, "bool"),),
    "flatten": ((0, _FLATTENED, "lazy"),),
    "reverse": ((0, "({0} | list | reverse | list)", "lazy"),),
}
"""The translations of methods by the number of arguments, each with the type of its value."""
_OF_TEXT: dict[str, tuple[str, tuple[int, ...], str]] = {
    "toLower": ("lower", (0,), "str"),
    "toUpper": ("upper", (0,), "str"),
    "trim": ("strip", (0, 1), "str"),
    "trimLeft": ("lstrip", (0, 1), "str"),
    "trimRight": ("rstrip", (0, 1), "str"),
    "split": ("split", (0, 1), "list"),
    "replace": ("replace", (2,), "str"),
    "startsWith": ("startswith", (1,), "bool"),
    "endsWith": ("endswith", (1,), "bool"),
}
"""The methods of texts: our name, the permitted numbers of arguments, and the type of the value."""


def _is_of_list(part: tree.Expr) -> bool:
    """Return whether a member or a method fails for a mapping with a list `items`."""
    return isinstance(part, tree.Word) or (isinstance(part, tree.Call) and part.name in _OF_LIST)


def _is_decrypt(name: tree.Expr, value: tree.Expr) -> bool:
    return _name_of(name) == "decrypt" and isinstance(value, tree.Const) and isinstance(value.value, bool)


def _name_of(node: tree.Expr) -> str | None:
    if isinstance(node, tree.Word):
        return node.name
    return node.value if isinstance(node, tree.Const) and isinstance(node.value, str) else None


def _path_below_item(node: tree.Expr) -> str | None:
    """Return `a.b` for `$.a.b`, an empty text for `$`, and None for any other expression."""
    names: list[str] = []
    while isinstance(node, tree.Binary) and node.operator == "." and isinstance(node.second, tree.Word):
        names.insert(0, node.second.name)
        node = node.first
    return ".".join(names) if isinstance(node, tree.Variable) and node.name == "$" else None


def _mentions_item(node: tree.Expr) -> bool:
    match node:
        case tree.Variable("$"):
            return True
        case tree.Unary(_, operand):
            return _mentions_item(operand)
        case tree.Binary(_, first, second):
            return _mentions_item(first) or _mentions_item(second)
        case tree.Index(value, arguments):
            return _mentions_item(value) or any(map(_mentions_item, arguments))
        case tree.Call(_, arguments):
            return any(map(_mentions_item, arguments))
    return False
