"""The translation of Attune's expressions to Penstock's. An expression is parsed into a tree, and written again from
it. A part without an equivalent is not mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from penstock.errors import DefinitionError
from penstock.language.expressions import compile_template
from penstock.language.expressions import condition as compile_condition
from penstock_import.jinja_expressions import COMPARING
from penstock_import.wanted_text import NotMapped, Ours, literal, member

_PARSER = Environment(autoescape=False)  # only parses, and renders nothing
_CALCULATED = {nodes.Sub: "-", nodes.Mul: "*"}
OUTCOMES = {
    "succeeded": "succeeded()",
    "failed": "(failed() and not timed_out() and not cancelled())",
    "timed_out": "timed_out()",
}
"""The conditions for the outcomes of a task. In Attune, a task that took too long has timed out, and has not failed."""
_METADATA = frozenset(
    {"exit_code", "succeeded", "stdout", "stderr", "stdout_log", "stderr_log", "duration_ms", "error"}
)
"""Fields that Attune adds to a result beside the value of the action. They hide fields of the value with the same
names."""
_FUNCTIONS: Mapping[str, tuple[int, str, str]] = {
    "length": (1, "({0} | length)", "int"),
    "lower": (1, "{0}.lower()", "str"),
    "upper": (1, "{0}.upper()", "str"),
    "trim": (1, "{0}.strip()", "str"),
    "split": (2, "{0}.split({1})", "list"),
    "replace": (3, "{0}.replace({1}, {2})", "str"),
    "starts_with": (2, "{0}.startswith({1})", "bool"),
    "ends_with": (2, "{0}.endswith({1})", "bool"),
    "bool": (1, "(true if {0} else false)", "bool"),
    "abs": (1, "({0} | abs)", "number"),
    "min": (2, "min({0}, {1})", ""),
    "max": (2, "max({0}, {1})", ""),
    "sum": (1, "sum({0})", "number"),
    "string": (1, "({0} if {0} is string else {0} | json)", "str"),
    "int": (1, "({0} | int(none) if {0} | int(none) is not none else {0} | float | int)", "int"),
}
"""The functions by name: the number of arguments, the translation, and the type of the value."""
_BLOCK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_ALIKE = {"int": "number"}
_FALSE_TEXTS = '["", "false", "0", "no"]'


class AttuneExpressions:
    """The expressions at one place. `names` maps the names that may occur there to their names in Penstock.

    The longest known beginning of a name decides: `event.payload` is looked up before `event`. `kinds` has the types of
    values that are certain."""

    def __init__(
        self,
        names: Mapping[str, str],
        lists: frozenset[str] = frozenset(),
        *,
        own: str | None = None,
        kinds: Mapping[str, str] | None = None,
        after_failure: bool = False,
    ) -> None:
        self._names = names
        self._lists = lists
        """Tasks that run for each item of a list: their result is a list here, and is not there."""
        self._own = own
        """The task that has ended."""
        self._kinds = kinds or {}
        self._after_failure = after_failure
        self.secrets: set[str] = set()
        self.variables: set[str] = set()
        """The variables that were read."""

    def condition(self, text: Any) -> str:
        """Translate a `when` of a workflow to a Penstock condition. Attune renders a condition in braces as a text, and
        tests whether that text is true. Raises NotMapped for a part without an equivalent in Penstock."""
        inner, is_rendered = _unwrapped(text)
        ours = self._written(inner)
        return _checked(compile_condition, _rendered_truth(ours) if is_rendered else _is_true(ours))

    def criteria(self, text: Any) -> str:
        """Translate the condition of a rule, with or without braces. Raises NotMapped for a part without an equivalent
        in Penstock."""
        return _checked(compile_condition, _is_true(self._written(_unwrapped(text)[0])))

    def template(self, value: Any) -> Any:
        """Translate the templates in the texts of a value. Raises NotMapped for a part without an equivalent in
        Penstock."""
        return self._template(value, paths_only=False)

    def paths(self, value: Any) -> Any:
        """Translate the parameters of a rule. Their braces contain only paths. A path without a value is null, or an
        empty text inside of a longer text. Raises NotMapped for a part without an equivalent in Penstock."""
        return self._template(value, paths_only=True)

    def _template(self, value: Any, paths_only: bool) -> Any:
        if isinstance(value, Mapping):
            return {str(name): self._template(item, paths_only) for name, item in value.items()}
        if isinstance(value, list):
            return [self._template(item, paths_only) for item in value]
        if not isinstance(value, str) or "{{" not in value:
            if isinstance(value, str) and ("{%" in value or "{#" in value):
                raise NotMapped(value)
            return value
        alone = value.strip().startswith("{{") and value.strip().endswith("}}") and value.count("{{") == 1
        parts: list[str] = []
        end = 0
        for match in _BLOCK.finditer(value):
            ours = self._written(match[1], paths_only)
            if paths_only:
                ours = Ours(f"({ours.text} | default(none))")
            parts += [value[end : match.start()], "{{ " + (ours.text if alone else _in_text(ours)) + " }}"]
            end = match.end()
        text = "".join([*parts, value[end:]])
        if "{%" in text or "{#" in text:
            raise NotMapped(value)
        return _checked(compile_template, text.strip() if alone else text)

    def _written(self, text: str, paths_only: bool = False) -> Ours:
        try:
            tree = _PARSER.parse("{{ " + text + " }}")
        except TemplateSyntaxError:
            raise NotMapped(text.strip()) from None
        match tree.body:
            case [nodes.Output(nodes=[node])] if not isinstance(node, nodes.TemplateData):
                if paths_only and not isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem):
                    raise NotMapped(f"`{text.strip()}`, of which Attune renders only paths")
                return self._of(node)
        raise NotMapped(text.strip())

    def _of(self, node: nodes.Node) -> Ours:
        match node:
            case nodes.Const(value=value):
                return literal(value)
            case nodes.List(items=items):
                return Ours("[" + ", ".join(self._of(item).text for item in items) + "]", "list")
            case nodes.Not(node=inner):
                return Ours(f"(not {self._of(inner).text})", "bool")
            case nodes.And(left=left, right=right):
                return Ours(f"({_is_true(self._of(left))} and {_is_true(self._of(right))})", "bool")
            case nodes.Or(left=left, right=right):
                return Ours(f"({_is_true(self._of(left))} or {_is_true(self._of(right))})", "bool")
            case nodes.Compare(expr=left, ops=[nodes.Operand(op=op, expr=right)]) if op != "notin":
                return self._compared(op, self._of(left), self._of(right))
            case nodes.Neg(node=inner):
                return Ours(f"(-{self._of(inner).text})", "number")
            case nodes.BinExpr(left=left, right=right):
                return _calculated(type(node), self._of(left), self._of(right))
            case nodes.Call(node=nodes.Name(name=name), args=args, kwargs=[], dyn_args=None, dyn_kwargs=None):
                return self._call(name, args)
            case nodes.Name() | nodes.Getattr() | nodes.Getitem():
                return self._path(node)
        raise NotMapped(f"`{type(node).__name__.lower()}`, which Attune has not")

    def _compared(self, op: str, first: Ours, second: Ours) -> Ours:
        """Write a comparison. A truth value is not a number in Attune, but it is a number in Penstock."""
        plain = f"{first.text} {COMPARING[op]} {second.text}"
        if op == "in":
            return _within(first, second)
        if op not in ("eq", "ne") or first.kind == second.kind == "bool":
            return Ours(f"({plain})", "bool")
        kinds = [_ALIKE.get(side.kind, side.kind) for side in (first, second)]
        if all(kinds) and kinds[0] != kinds[1]:
            return Ours("false" if op == "eq" else "true", "bool")
        for side, other in ((first, second), (second, first)):
            if not other.kind and side.kind in ("int", "number", "bool"):
                is_boolean = "is boolean" if (side.kind == "bool") is (op == "eq") else "is not boolean"
                return Ours(f"({other.text} {is_boolean} {'and' if op == 'eq' else 'or'} {plain})", "bool")
        if not first.kind and not second.kind:
            alike = f"({first.text} is boolean) == ({second.text} is boolean)"
            text = f"{alike} and {plain}" if op == "eq" else f"not {alike} or {plain}"
            return Ours(f"({text})", "bool")
        return Ours(f"({plain})", "bool")

    def _call(self, name: str, args: list[nodes.Expr]) -> Ours:
        if name in OUTCOMES and not args and name in self._names:
            return Ours(OUTCOMES[name], "bool")
        if name == "result" and not args and name in self._names:
            return self._result("result", [])
        if name == "contains" and len(args) == 2:
            return _within(self._of(args[1]), self._of(args[0]))
        if name in _FUNCTIONS and len(args) == _FUNCTIONS[name][0]:
            _, form, kind = _FUNCTIONS[name]
            return Ours(form.format(*(self._of(argument).text for argument in args)), kind)
        raise NotMapped(f"{name}()")

    def _path(self, node: nodes.Node) -> Ours:
        steps: list[str | int] = []
        while not isinstance(node, nodes.Name):
            match node:
                case nodes.Getattr(node=inner, attr=attr):
                    steps.insert(0, attr)
                    node = inner
                case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as value)):
                    steps.insert(0, value)
                    node = inner
                case nodes.Call(node=nodes.Name(name="result"), args=[]) if "result" in self._names:
                    return self._result("result", steps)
                case _:
                    raise NotMapped(f"`{type(node).__name__.lower()}` within a path")
        whole = [node.name, *steps]
        if node.name == "keystore" and "keystore" in self._names:
            if len(whole) != 2 or not isinstance(whole[1], str):
                raise NotMapped(".".join(map(str, whole)))
            self.secrets.add(whole[1])
            return Ours(f"secrets.{whole[1]}", "secret")
        if node.name in ("task", "tasks") and "task" in self._names:
            return self._task(whole)
        for length in range(len(whole), 0, -1):
            beginning = ".".join(str(part) for part in whole[:length])
            if beginning in self._names:
                if self._names[beginning] == "vars" and len(whole) > length:
                    self.variables.add(str(whole[length]))
                text = self._names[beginning] + "".join(_step(step) for step in whole[length:])
                return Ours(text, self._kinds.get(".".join(map(str, whole)), ""))
        raise NotMapped(".".join(map(str, whole)))

    def _task(self, whole: list[str | int]) -> Ours:
        if len(whole) < 3 or whole[1] in self._lists:
            raise NotMapped(".".join(map(str, whole)))
        steps = whole[2:]
        if steps[0] == "result":  # an older way to write the path, which leads to the same fields
            steps = steps[1:]
        return self._result(f"tasks{_step(whole[1])}.result", steps)

    def _result(self, base: str, steps: list[str | int]) -> Ours:
        """Return a part of a result. In Attune, the value of the action is `data`, and its fields are also direct
        members of the result."""
        if base == "result" and self._own in self._lists:
            raise NotMapped("result() of a task with items")
        if base == "result" and self._after_failure:
            raise NotMapped("the result of a failed task, which has an `error` in Penstock and no result")
        if steps[:1] == ["data"]:
            return Ours(base + "".join(_step(step) for step in steps[1:]))
        if not steps:
            raise NotMapped("a whole result, which has `data`, `stdout` and more in Attune")
        if steps[0] in _METADATA:
            raise NotMapped(f"`{steps[0]}` of a result, which only Attune has")
        return Ours(base + "".join(_step(step) for step in steps))


def _within(needle: Ours, haystack: Ours) -> Ours:
    """Write `needle in haystack`. In a list, a truth value is not a number in Attune, but it is a number in Penstock."""
    plain = f"{needle.text} in {haystack.text}"
    if needle.kind in ("str", "none", "list", "dict") or haystack.kind in ("str", "dict"):
        return Ours(f"({plain})", "bool")
    booleans = f"{needle.text} in ({haystack.text} | select('boolean') | list)"
    numbers = f"{needle.text} in ({haystack.text} | reject('boolean') | list)"
    within = {"bool": booleans, "int": numbers, "number": numbers}.get(
        needle.kind, f"({booleans} if {needle.text} is boolean else {numbers})"
    )
    if haystack.kind == "list":
        return Ours(f"({within})", "bool")
    is_list = f"{haystack.text} is sequence and {haystack.text} is not string"
    return Ours(f"({within} if {is_list} else {plain})", "bool")


def _calculated(kind: type[nodes.Node], first: Ours, second: Ours) -> Ours:
    """Write a calculation. In Attune, the quotient of two integers is an integer if there is no remainder, and a
    remainder has the sign of the first number."""
    lhs, rhs = first.text, second.text
    kinds = {first.kind, second.kind}
    if kind is nodes.Add:
        return Ours(f"({lhs} + {rhs})", first.kind if len(kinds) == 1 else "")
    if kind in _CALCULATED:
        return Ours(f"({lhs} {_CALCULATED[kind]} {rhs})", "int" if kinds == {"int"} else "number")
    if kind is nodes.Div:
        is_whole = f"{lhs} is integer and {rhs} is integer and {lhs} % {rhs} == 0"
        return Ours(f"({lhs} // {rhs} if {is_whole} else {lhs} / {rhs})", "number")
    if kind is nodes.Mod:
        is_plain = f"{lhs} % {rhs} == 0 or ({lhs} < 0) == ({rhs} < 0)"
        return Ours(f"({lhs} % {rhs} if {is_plain} else {lhs} % {rhs} - {rhs})", "number")
    raise NotMapped(f"`{kind.__name__.lower()}`, which Attune has not")


def _unwrapped(text: Any) -> tuple[str, bool]:
    """Return an expression without its braces, and whether it had braces. Raises NotMapped for a value that is not a
    text."""
    if not isinstance(text, str):
        raise NotMapped(str(text))
    match = _BLOCK.fullmatch(text.strip())
    return (match[1], True) if match else (text, False)


def _is_true(ours: Ours) -> str:
    return ours.text if ours.kind == "bool" else f"(true if {ours.text} else false)"


def _rendered_truth(ours: Ours) -> str:
    """Return an expression that tells whether Attune takes the text of a value as true: it is not empty, `false`, `0`
    or `no`."""
    if ours.kind == "bool":
        return ours.text
    value = ours.text
    is_false_text = f"{value}.strip().lower() in {_FALSE_TEXTS}"
    of_others = f"{value} is not none and ({value} is float or {value} != 0)"
    return f"({value} if {value} is boolean else not ({is_false_text}) if {value} is string else {of_others})"


def _in_text(ours: Ours) -> str:
    """Return an expression for a value as Attune inserts it into a text: null becomes nothing, and any value but a text
    becomes JSON."""
    if ours.kind in ("str", "int", "secret"):
        return ours.text
    return f'({ours.text} if {ours.text} is string else "" if {ours.text} is none else {ours.text} | json)'


def _step(step: str | int) -> str:
    return member("", step) if isinstance(step, str) else f"[{step}]"


def constant(value: Any) -> str:
    """Return a JSON value as a literal of Penstock's expressions. Raises NotMapped for a mapping."""
    if isinstance(value, Mapping):
        raise NotMapped(str(value))
    return literal(value).text


def _checked(check: Any, ours: str) -> str:
    try:
        check(ours)
    except DefinitionError as error:
        raise NotMapped(f"{ours}: {error.message}") from None
    return ours
