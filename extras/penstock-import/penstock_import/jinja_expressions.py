"""The translation of StackStorm's Jinja expressions to Penstock's, by syntax tree. Both are Jinja, with different
names, undefined values and filters."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from penstock.language.expressions import TESTS
from penstock_import.orquesta_names import ITEMS, whole_results
from penstock_import.wanted_text import NotMapped, Ours, literal, member
from penstock_import.yaql_expressions import ROOTS, Names

_JINJA = Environment(trim_blocks=True, lstrip_blocks=True)
"""StackStorm renders with these options: a block on a line of its own leaves no line behind."""
_OPERATORS = {
    nodes.Add: "+",
    nodes.Sub: "-",
    nodes.Mul: "*",
    nodes.Div: "/",
    nodes.FloorDiv: "//",
    nodes.Mod: "%",
    nodes.Pow: "**",
    nodes.And: "and",
    nodes.Or: "or",
}
COMPARING = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "lteq": "<=",
    "gt": ">",
    "gteq": ">=",
    "in": "in",
    "notin": "not in",
}
_SAME_FILTERS = {
    **dict.fromkeys(("length", "count", "wordcount"), "int"),
    **dict.fromkeys(
        ("lower", "upper", "trim", "capitalize", "title", "string", "replace", "join", "truncate"), "str"
    ),
    **dict.fromkeys(
        ("list", "sort", "unique", "map", "select", "reject", "selectattr", "rejectattr"), "list"
    ),
    **dict.fromkeys(("default", "d", "first", "last", "abs", "round"), ""),
}
"""The filters that both have from Jinja, with the type of their values."""
_METHODS = {
    "lower": "str",
    "upper": "str",
    "strip": "str",
    "lstrip": "str",
    "rstrip": "str",
    "split": "list",
    "rsplit": "list",
    "splitlines": "list",
    "startswith": "bool",
    "endswith": "bool",
    "replace": "str",
    "title": "str",
    "capitalize": "str",
    "join": "str",
}
_ATTRIBUTES = frozenset(dir(dict))
"""In Jinja `x.items` of a mapping is the method, instead of the key `items`. Of a text or a list, `x.title` is the text of a
method there, and fails here."""


def translate(text: str, names: Names) -> Ours:
    """Translate a Jinja expression, without its braces, to an expression of Penstock. Raises NotMapped for a part
    without an equivalent in Penstock."""
    try:
        parsed = _JINJA.parse("{{ " + text + " }}")
    except TemplateSyntaxError as error:
        raise NotMapped(f"it is not Jinja: {error.message}") from None
    body = parsed.body[0] if len(parsed.body) == 1 else None
    if not isinstance(body, nodes.Output) or len(body.nodes) != 1:
        raise NotMapped("it is more than an expression")
    return _Writer(names).write(body.nodes[0])


def translate_text(text: str, names: Names) -> str:
    """Translate a text with Jinja blocks to a Penstock template with a text as its value. Raises NotMapped for a part
    without an equivalent in Penstock."""
    try:
        parsed = _JINJA.parse(text)
    except TemplateSyntaxError as error:
        raise NotMapped(f"it is not Jinja: {error.message}") from None
    return '{{ "" }}' + _written(parsed.body, _Writer(names))


def translate_to_text(text: str, names: Names) -> Ours:
    """Translate a text that Jinja renders to an expression with the same text as its value. Raises NotMapped for a part
    without an equivalent in Penstock."""
    try:
        parsed = _JINJA.parse(text)
    except TemplateSyntaxError as error:
        raise NotMapped(f"it is not Jinja: {error.message}") from None
    return Ours(_joined_text(parsed.body, _Writer(names)), "str")


def _joined_text(body: Sequence[nodes.Node], writer: _Writer) -> str:
    """Return an expression for the text of a part of a template. Blocks in the part choose between texts."""
    parts: list[str] = []
    for node in body:
        if isinstance(node, nodes.Output):
            parts += [
                literal(part.data).text
                if isinstance(part, nodes.TemplateData)
                else f"({writer.write(part).text} | string)"
                for part in node.nodes
            ]
        elif isinstance(node, nodes.If):
            branches = [(entry.test, entry.body) for entry in (node, *node.elif_)]
            conditional = "".join(
                f"{_joined_text(texts, writer)} if {writer.write(test).text} else "
                for test, texts in branches
            )
            parts.append(f"({conditional}{_joined_text(node.else_, writer)})")
        else:
            raise NotMapped(f"the block `{type(node).__name__.lower()}` of Jinja in an expression")
    return f"({' ~ '.join(parts)})" if parts else '""'


def _written(body: Sequence[nodes.Node], writer: _Writer) -> str:
    text = ""
    for node in body:
        if isinstance(node, nodes.Assign | nodes.For):
            if not isinstance(node.target, nodes.Name):
                raise NotMapped("a block of Jinja that sets several names")
            source = writer.write(node.node if isinstance(node, nodes.Assign) else node.iter).text
            name = writer.local(node.target.name)
            if isinstance(node, nodes.Assign):
                text += f"{{% set {name} = {source} %}}"
                continue
            if node.test is not None or node.recursive:
                raise NotMapped("a loop of Jinja with a condition")
            otherwise = f"{{% else %}}{_written(node.else_, writer)}" if node.else_ else ""
            text += f"{{% for {name} in {source} %}}{_written(node.body, writer)}{otherwise}{{% endfor %}}"
            continue
        if isinstance(node, nodes.Output):
            for part in node.nodes:
                value = (
                    literal(part.data).text
                    if isinstance(part, nodes.TemplateData)
                    else writer.write(part).text
                )
                text += f"{{{{ {value} | string }}}}"
        elif isinstance(node, nodes.If):
            text += f"{{% if {writer.write(node.test).text} %}}{_written(node.body, writer)}"
            for other in node.elif_:
                text += f"{{% elif {writer.write(other.test).text} %}}{_written(other.body, writer)}"
            text += (f"{{% else %}}{_written(node.else_, writer)}" if node.else_ else "") + "{% endif %}"
        else:
            raise NotMapped(f"the block `{type(node).__name__.lower()}` of Jinja")
    return text


class _Writer:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._locals: set[str] = set()

    def local(self, name: str) -> str:
        """Return the Penstock name of a variable that the text sets itself. The Penstock name hides no other one."""
        if not name.isascii() or name.startswith("_"):
            raise NotMapped(f"the name {name}")
        self._locals.add(name)
        return f"local_{name}"

    def write(self, node: nodes.Expr | nodes.Node) -> Ours:
        if isinstance(node, nodes.Const):
            return literal(node.value)
        if isinstance(node, nodes.Name):
            return self._chain(node)
        if isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Call):
            return self._chain(node)
        if isinstance(node, nodes.Filter):
            return self._filter(node)
        if isinstance(node, nodes.Test):
            return self._test(node)
        if isinstance(node, nodes.Compare):
            text = self.write(node.expr).text
            for operand in node.ops:
                text += f" {COMPARING[operand.op]} {self.write(operand.expr).text}"
            return Ours(f"({text})", "bool")
        if isinstance(node, nodes.BinExpr):
            return self._binary(node)
        if isinstance(node, nodes.Not):
            return Ours(f"(not {self.write(node.node).text})", "bool")
        if isinstance(node, nodes.Neg | nodes.Pos):
            ours = self.write(node.node)
            return Ours(f"({'-' if isinstance(node, nodes.Neg) else '+'}{ours.text})", ours.kind)
        if isinstance(node, nodes.Concat):
            return Ours(f"({' ~ '.join(self.write(part).text for part in node.nodes)})", "str")
        if isinstance(node, nodes.CondExpr):
            if node.expr2 is None:
                raise NotMapped("an `if` without `else`")
            first, test, second = (self.write(part).text for part in (node.expr1, node.test, node.expr2))
            return Ours(f"({first} if {test} else {second})")
        if isinstance(node, nodes.List | nodes.Tuple):
            return Ours(f"[{', '.join(self.write(item).text for item in node.items)}]", "list")
        if isinstance(node, nodes.Dict):
            pairs = (f"{self.write(pair.key).text}: {self.write(pair.value).text}" for pair in node.items)
            return Ours(f"{{{', '.join(pairs)}}}", "dict")
        raise NotMapped(f"`{type(node).__name__.lower()}` in an expression")

    def _binary(self, node: nodes.BinExpr) -> Ours:
        first, second = self.write(node.left), self.write(node.right)
        operator = _OPERATORS.get(type(node))
        if operator is None or (operator == "%" and first.kind == "str"):
            raise NotMapped("the formatting of a text with `%`")
        kind = "bool" if first.kind == second.kind == "bool" and operator in ("and", "or") else ""
        if operator == "+" and first.kind in ("str", "list"):
            kind = first.kind
        return Ours(f"({first.text} {operator} {second.text})", kind)

    def _chain(self, node: nodes.Node) -> Ours:
        """Translate members, indexes and method calls, starting with the value to which they apply."""
        parts: list[nodes.Node] = []
        while isinstance(node, nodes.Getattr | nodes.Getitem) or (
            isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr)
        ):
            parts.insert(0, node)
            node = node.node.node if isinstance(node, nodes.Call) else node.node  # type: ignore[attr-defined]
        steps: list[str] = []
        for part in parts:
            if isinstance(part, nodes.Getattr):
                steps.append(part.attr)
            elif (
                isinstance(part, nodes.Getitem)
                and isinstance(part.arg, nodes.Const)
                and isinstance(part.arg.value, str)
            ):
                steps.append(part.arg.value)
            else:
                break
        if isinstance(node, nodes.Name) and node.name in self._locals:
            value, covered = Ours(f"local_{node.name}"), 0
        elif isinstance(node, nodes.Name):
            value, covered = self._names.root(node.name, None, steps)
        elif isinstance(node, nodes.Call):
            value, covered = self._root(node, steps)
        else:
            value, covered = self.write(node), 0
        if value.kind in ITEMS:
            raise NotMapped("the items of a task, each with a status and a result in StackStorm")
        value = whole_results(value)
        for part in parts[covered:]:
            value = self._step(value, part)
        return value

    def _root(self, node: nodes.Call, steps: Sequence[str]) -> tuple[Ours, int]:
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        says_decrypt = name == "st2kv" and all(_is_decrypt(pair) for pair in node.kwargs)
        if (
            name not in ROOTS
            or (node.kwargs and not says_decrypt)
            or node.dyn_args
            or node.dyn_kwargs
            or len(node.args) > 1
        ):
            raise NotMapped(f"the function {name}()")
        argument = node.args[0] if node.args else None
        if argument is None:
            return self._names.root(name, None, steps)
        if not isinstance(argument, nodes.Const) or not isinstance(argument.value, str):
            raise NotMapped(f"{name}() with an expression instead of a fixed name")
        return self._names.root(name, argument.value, steps)

    def _step(self, value: Ours, part: nodes.Node) -> Ours:
        if isinstance(part, nodes.Call):
            assert isinstance(part.node, nodes.Getattr)
            return self._method(value, part.node.attr, part)
        if isinstance(part, nodes.Getattr):
            if part.attr in _ATTRIBUTES:
                raise NotMapped(f"`.{part.attr}`, which is a method of the value in StackStorm")
            return Ours(member(value.text, part.attr))
        assert isinstance(part, nodes.Getitem)
        if isinstance(part.arg, nodes.Slice):
            bounds = [
                "" if bound is None else self.write(bound).text
                for bound in (part.arg.start, part.arg.stop, part.arg.step)
            ]
            return Ours(f"{value.text}[{':'.join(bounds)}]")
        if isinstance(part.arg, nodes.Const) and isinstance(part.arg.value, str):
            return Ours(member(value.text, part.arg.value))
        return Ours(f"{value.text}[{self.write(part.arg).text}]")

    def _method(self, value: Ours, name: str, call: nodes.Call) -> Ours:
        if call.kwargs or call.dyn_args or call.dyn_kwargs:
            raise NotMapped(f"the method {name}() with named arguments")
        arguments = [self.write(argument).text for argument in call.args]
        if name == "get" and len(arguments) in (1, 2):
            default = arguments[1] if len(arguments) == 2 else "none"
            return Ours(f"({value.text}[{arguments[0]}] if {arguments[0]} in {value.text} else {default})")
        if name in ("keys", "values", "items") and not arguments:
            form = {"keys": "list", "values": "items | map(attribute=1) | list", "items": "items"}[name]
            return Ours(f"({value.text} | {form})", "list")
        if name in _METHODS:
            return Ours(f"{value.text}.{name}({', '.join(arguments)})", _METHODS[name])
        raise NotMapped(f"the method {name}()")

    def _filter(self, node: nodes.Filter) -> Ours:
        if node.node is None or node.dyn_args or node.dyn_kwargs:
            raise NotMapped(f"the filter {node.name} with spread arguments")
        value = self.write(node.node)
        if node.name == "decrypt_kv" and value.kind == "secret":
            return value
        arguments = [self.write(argument).text for argument in node.args]
        arguments += [f"{pair.key}={self.write(pair.value).text}" for pair in node.kwargs]
        if node.name in ("map", "select", "reject", "selectattr", "rejectattr"):
            _refuse_unknown_parts(node)
        if node.name in _SAME_FILTERS:
            spread = f"({', '.join(arguments)})" if arguments else ""
            return Ours(f"({value.text} | {node.name}{spread})", _SAME_FILTERS[node.name])
        if node.name == "int" and not arguments:
            whole = f"{value.text} | int(none)"
            return Ours(f"(({whole}) if ({whole}) is not none else {value.text} | float(0) | int)", "int")
        if node.name == "float" and not arguments:
            return Ours(f"({value.text} | float(0.0))", "number")
        if node.name in ("from_json_string", "json_parse") and not arguments:
            return Ours(f"({value.text} | fromjson)")
        raise NotMapped(f"the filter {node.name}")

    def _test(self, node: nodes.Test) -> Ours:
        if node.name not in TESTS or node.kwargs or node.dyn_args or node.dyn_kwargs:
            raise NotMapped(f"the test {node.name}")
        arguments = ", ".join(self.write(argument).text for argument in node.args)
        return Ours(
            f"({self.write(node.node).text} is {node.name}{f'({arguments})' if arguments else ''})", "bool"
        )


def _is_decrypt(pair: nodes.Keyword) -> bool:
    return (
        pair.key == "decrypt" and isinstance(pair.value, nodes.Const) and isinstance(pair.value.value, bool)
    )


def _refuse_unknown_parts(node: nodes.Filter) -> None:
    """Raise NotMapped for a filter or a test that is passed by name and that Penstock may lack."""
    if node.name == "map":
        if node.args or [pair.key for pair in node.kwargs] != ["attribute"]:
            raise NotMapped("map() with a filter")
        return
    names = node.args[1:2] if node.name.endswith("attr") else node.args[:1]
    for name in names:
        if not isinstance(name, nodes.Const) or name.value not in TESTS:
            raise NotMapped(f"the test {getattr(name, 'value', '')} within {node.name}()")
