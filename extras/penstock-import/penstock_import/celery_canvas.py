"""The conversion of Celery's chains, groups and chords to workflows, if their tasks are in the source. Each argument that
the function around them computes becomes a required parameter of the workflow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock_import.celery_calls import NotLiteral, Signature, called, literal, sent
from penstock_import.celery_collected import Signatures
from penstock_import.wanted_text import NotMapped, member

Resolve = Callable[[ast.expr], tuple[str, Signature] | None]
"""A function that returns the Penstock action and its parameters, for an expression that names a task."""
_CANVAS = frozenset({"chain", "group", "chord"})
_MAKING = _CANVAS | {"apply", "apply_async", "delay", "s", "send_task", "si", "signature", "subtask"}
"""The calls that make or start a task."""
_NOT_JSON = (ast.GeneratorExp, ast.Lambda, ast.Set, ast.SetComp)


@dataclass(slots=True)
class _Step:
    """A part of a canvas: its last tasks, and the expression for its value."""

    ends: list[str]
    value: str


@dataclass(slots=True)
class Canvas:
    """A builder for the workflow of one canvas. `parameters` are those of the function around it, with
    their schemas; the schema is None for a default that only running the code would tell. `collected` returns the
    signatures in a list of that function, or None for a list that is not certain."""

    resolve: Resolve
    parameters: Mapping[str, dict[str, Any] | None]
    collected: Callable[[ast.expr], Signatures | None]
    named: Callable[[ast.Name], ast.expr | None]
    """A function that returns the signature in a variable, or None for a value that is not certain."""
    used: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The schemas of the workflow's parameters."""
    computed: dict[str, str] = field(default_factory=dict)
    """The expressions of the function around the canvas for the required parameters."""
    lists: list[Signatures] = field(default_factory=list)
    """The lists in which the function collects signatures."""
    variables: list[ast.expr] = field(default_factory=list)
    """The signatures that the function keeps in variables."""
    tasks: dict[str, Any] = field(default_factory=dict)

    def workflow(self, node: ast.expr) -> dict[str, Any]:
        """Return the body of the workflow. Raises NotMapped for a part without an equivalent in Penstock, and
        NotLiteral for a value that is only known when the module runs."""
        last = self._part(_started(node), None)
        body: dict[str, Any] = {"parameters": dict(sorted(self.used.items()))}
        return body | {"tasks": self.tasks, "output": _whole(last.value)}

    def _part(self, node: ast.expr, previous: _Step | None) -> _Step:
        if isinstance(node, ast.Name) and (value := self.named(node)) is not None:
            self.variables.append(value)
            return self._task(value, previous)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            _refuse_single_groups([node.left, node.right])
            first = self._part(node.left, previous)
            if _is_group(node.left):
                raise NotMapped("a group before a task, which Celery turns into a chord")
            return self._part(node.right, first)
        if isinstance(node, ast.Call) and called(node) == "chain" and not node.keywords:
            parts = _list_of(node.args)
            _refuse_single_groups(parts)
            for number, part in enumerate(parts):
                if _is_group(part) and number < len(parts) - 1:
                    raise NotMapped("a group before a task, which Celery turns into a chord")
                previous = self._part(part, previous)
            if previous is None:
                raise NotMapped("an empty chain")
            return previous
        if isinstance(node, ast.Call) and called(node) == "group" and not node.keywords:
            return self._group(node.args, previous)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and called(node.func) == "chord":
            header, body = node.func.args, node.args
            if len(header) != 1 or len(body) != 1 or node.keywords or node.func.keywords:
                raise NotMapped("a chord of more than a header and a body")
            return self._part(body[0], self._group(_header(header), previous))
        if (
            isinstance(node, ast.Call)
            and called(node) == "chord"
            and not node.keywords
            and len(node.args) == 2
        ):
            return self._part(node.args[1], self._group(_header(node.args[:1]), previous))
        return self._task(node, previous)

    def _group(self, args: list[ast.expr], previous: _Step | None) -> _Step:
        if (signatures := self._signatures(args)) is not None:
            return self._each(signatures, previous)
        parts = _list_of(args)
        if not parts:
            raise NotMapped("an empty group")
        if any(_is_group(part) for part in parts):
            raise NotMapped("a group within a group, which Celery flattens in an order of its own")
        steps = [self._part(part, previous) for part in parts]
        ends = [end for step in steps for end in step.ends]
        return _Step(ends, f"[{', '.join(step.value for step in steps)}]")

    def _signatures(self, args: list[ast.expr]) -> Signatures | None:
        """Return the signatures that the only argument of a group makes while it runs; None for any other arguments."""
        if len(args) != 1:
            return None
        node = args[0].value if isinstance(args[0], ast.Starred) else args[0]
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return Signatures([node.elt], node)
        return self.collected(args[0]) if isinstance(node, ast.Name) else None

    def _each(self, signatures: Signatures, previous: _Step | None) -> _Step:
        """Add a task that runs for each item of a required parameter, and return its step. An item has the arguments that
        differ between the signatures."""
        action, inputs = self._inputs(signatures.nodes[0], previous)
        further = [self._inputs(node, previous) for node in signatures.nodes[1:]]
        if any(other != action or values.keys() != inputs.keys() for other, values in further):
            raise NotMapped("a list of signatures of several tasks, or with several numbers of arguments")
        supplied: dict[str, Any] = {}
        fields: dict[str, list[ast.expr]] = {}
        for name, value in inputs.items():
            values = [value, *(values[name] for _, values in further)]
            nodes = [value for value in values if isinstance(value, ast.expr)]
            if len(nodes) < len(values):
                supplied[name] = value
                continue
            plain = self._plain(nodes[0]) if len(set(map(ast.dump, nodes))) == 1 else None
            if plain is not None:
                supplied[name] = plain[0]
                continue
            fields[name] = nodes
            for node in nodes:
                self._refuse(node)
        if not fields:
            raise NotMapped("a list of equal signatures whose number is known only at run time")
        parameter = self._list_parameter(action, signatures, fields)
        item = "item" if len(fields) == 1 else None
        supplied |= {name: _whole(item or member("item", name)) for name in fields}
        items = {"with_items": _whole(member("parameters", parameter))}
        return self._added(action, {name: supplied[name] for name in inputs}, previous, items)

    def _list_parameter(
        self, action: str, signatures: Signatures, fields: Mapping[str, Sequence[ast.expr]]
    ) -> str:
        """Add the parameter with the items of a list of signatures, and return its name."""
        texts = [_item({name: nodes[number] for name, nodes in fields.items()})
                 for number in range(len(signatures.nodes))]  # fmt: skip
        node = signatures.node
        if isinstance(node, ast.Name):
            self.lists.append(signatures)
            signatures.items = texts
            if (comprehension := signatures.comprehension) is not None:
                generators = " ".join(ast.unparse(part).strip() for part in comprehension.generators)
                signatures.items = [f"[{texts[0]} {generators}]"]
            return self._required(node.id, node.id, is_list=True)
        generator = node.generators[0]
        source = generator.iter.id if isinstance(generator.iter, ast.Name) else ""
        is_plain = len(node.generators) == 1 and not generator.ifs and not generator.is_async
        if is_plain and source and texts == [ast.unparse(generator.target)]:
            schema = self.parameters.get(source)
            if schema is not None and isinstance(schema.get("default", []), list):
                self.used[source] = {"type": "array"} | schema
                return source
            return self._required(source, f"list({source})", is_list=True)
        generators = " ".join(ast.unparse(part).strip() for part in node.generators)
        name = f"{action.rpartition('.')[2]}_items"
        return self._required(name, f"[{texts[0]} {generators}]", is_list=True)

    def _task(self, node: ast.expr, previous: _Step | None) -> _Step:
        action, inputs = self._inputs(node, previous)
        supplied = {
            name: self._value(value, name) if isinstance(value, ast.expr) else value
            for name, value in inputs.items()
        }
        return self._added(action, supplied, previous, {})

    def _added(
        self, action: str, supplied: dict[str, Any], previous: _Step | None, items: dict[str, Any]
    ) -> _Step:
        """Add a task to the workflow, and return its step."""
        name = action.rpartition(".")[2]
        while name in self.tasks:
            stem, _, number = name.rpartition("_")
            name = f"{stem}_{int(number) + 1}" if stem and number.isdigit() else f"{name}_2"
        task: dict[str, Any] = {"action": action} | items
        if supplied:
            task["input"] = supplied
        if previous is not None:
            task["needs"] = list(dict.fromkeys(previous.ends))
        self.tasks[name] = task
        return _Step([name], member("tasks", name) + ".result")

    def _inputs(self, node: ast.expr, previous: _Step | None) -> tuple[str, dict[str, ast.expr | str]]:
        """Return the action of a signature and its arguments by parameter: an expression of the source, or the text of
        the previous task's result."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise NotMapped(f"{ast.unparse(node)} is not a signature")
        kind = node.func.attr
        hits = self.resolve(node.func.value)
        if hits is None or kind not in ("s", "si", "signature", "subtask"):
            raise NotMapped(f"{ast.unparse(node)} is not a signature of a task of this source")
        action, signature = hits
        args, kwargs, immutable = self._arguments(node, kind)
        if any(isinstance(argument, ast.Starred) for argument in args):
            raise NotMapped("arguments that are spread with *")
        values: list[ast.expr | str] = list(args)
        if previous is not None and not immutable:
            values.insert(0, _whole(previous.value))
        if len(values) > len(signature.names):
            raise NotMapped(f"more arguments by position than {action} has parameters")
        supplied = dict(zip(signature.names, values, strict=False))
        for name, value in kwargs.items():
            if name in supplied:
                raise NotMapped(f"{name} of {action} twice")
            supplied[name] = value
        return action, supplied

    def _arguments(self, node: ast.Call, kind: str) -> tuple[list[ast.expr], dict[str, ast.expr], bool]:
        if kind in ("s", "si"):
            if any(keyword.arg is None for keyword in node.keywords):
                raise NotMapped("arguments that are spread with **")
            return list(node.args), {str(word.arg): word.value for word in node.keywords}, kind == "si"
        options = {str(word.arg): word.value for word in node.keywords}
        if len(node.args) > 2 or options.keys() - {"args", "kwargs", "immutable"}:
            raise NotMapped("options of a signature")
        whole = dict(zip(("args", "kwargs"), node.args, strict=False)) | options
        args, kwargs = whole.get("args"), whole.get("kwargs")
        if not (args is None or isinstance(args, ast.Tuple | ast.List)) or not (
            kwargs is None
            or (isinstance(kwargs, ast.Dict) and all(isinstance(key, ast.Constant) for key in kwargs.keys))
        ):
            raise NotLiteral(ast.unparse(node))
        words: dict[str, ast.expr] = {}
        if isinstance(kwargs, ast.Dict):
            for key, value in zip(kwargs.keys, kwargs.values, strict=True):
                assert isinstance(key, ast.Constant)
                words[str(key.value)] = value
        immutable = "immutable" in options and literal(options["immutable"]) is True
        return list(args.elts) if args is not None else [], words, immutable

    def _value(self, node: ast.expr, name: str) -> Any:
        """Return an argument of a task. What only running would tell is read from a required parameter, with the name of
        the variable or of the task's parameter `name`."""
        plain = self._plain(node)
        if plain is not None:
            return plain[0]
        self._refuse(node)
        return _whole(member("parameters", self._required(_name_of(node) or name, ast.unparse(node))))

    def _plain(self, node: ast.expr) -> tuple[Any] | None:
        """Return the value of a literal or of a parameter of the function around it; None for any other expression.
        Raises NotMapped for a value that is not JSON."""
        if _is_object(node):
            raise NotMapped(f"{ast.unparse(node)} as an argument, which is not JSON")
        if isinstance(node, ast.Name) and (schema := self.parameters.get(node.id)) is not None:
            self.used.setdefault(node.id, schema)
            return (_whole(member("parameters", node.id)),)
        try:
            value = literal(node)
        except NotLiteral:
            return None
        if not isinstance(value, str | int | float | bool | list | dict | None):
            raise NotMapped(f"a {type(value).__name__} as an argument")
        return (sent(value),)

    def _refuse(self, node: ast.expr) -> None:
        """Raise NotMapped for an argument that is not JSON, or does more than compute a value."""
        if _is_object(node):
            raise NotMapped(f"{ast.unparse(node)} as an argument, which is not JSON")
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                raise NotMapped(f"{ast.unparse(part)} in an argument, which gives a variable a value")
            is_task = isinstance(part, ast.Name | ast.Attribute) and self.resolve(part) is not None
            if is_task or (isinstance(part, ast.Call) and called(part) in _MAKING):
                raise NotMapped(
                    f"{ast.unparse(part)} in an argument, which is a task, or makes or starts a task"
                )

    def _required(self, name: str, text: str, *, is_list: bool = False) -> str:
        """Add a required parameter for an expression, and return its name. A variable that occurs again has the same
        parameter."""
        schema: dict[str, Any] = {"type": "array", "required": True} if is_list else {"required": True}
        first, number = name, 1
        while (name in self.parameters and name != text) or name in self.used:
            if self.computed.get(name) == text == first and self.used[name] == schema:
                return name
            number += 1
            name = f"{first}_{number}"
        self.used[name], self.computed[name] = schema, text
        return name


def _is_object(node: ast.expr) -> bool:
    """Return whether an expression is certainly a value that JSON has no form for."""
    return isinstance(node, _NOT_JSON) or (isinstance(node, ast.Name) and node.id in ("cls", "self"))


def _name_of(node: ast.expr) -> str:
    """Return a name for the value of a variable or of a member: `order_id` for `self.order.id`; empty for any other
    expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return (
        node.id if not parts else "_".join([*([node.id] if node.id not in ("cls", "self") else []), *parts])
    )


def _item(fields: Mapping[str, ast.expr]) -> str:
    """Return the expression of an item: the only argument that differs, or a dict of such arguments."""
    if len(fields) == 1:
        return ast.unparse(next(iter(fields.values())))
    pairs = (f"{name!r}: {ast.unparse(node)}" for name, node in fields.items())
    return f"{{{', '.join(pairs)}}}"


def _whole(text: str) -> str:
    return "{{ " + text + " }}"


def _header(args: list[ast.expr]) -> list[ast.expr]:
    """Return the arguments of the group that is the header of a chord: Celery takes its tasks."""
    only = args[0]
    return only.args if isinstance(only, ast.Call) and _is_group(only) and not only.keywords else args


def _is_group(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "group"


def _refuse_single_groups(parts: list[ast.expr]) -> None:
    """Raise NotMapped for a group of one task in a chain. Celery runs the task itself, and its result is not a list."""
    for part in parts:
        if isinstance(part, ast.Call) and _is_group(part) and len(_list_of(part.args)) == 1:
            raise NotMapped("a group of one task in a chain, which Celery replaces by the task")


def _list_of(args: list[ast.expr]) -> list[ast.expr]:
    if len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple):
        args = args[0].elts
    if any(isinstance(arg, ast.Starred | ast.GeneratorExp | ast.ListComp) for arg in args) or (
        len(args) == 1 and isinstance(args[0], ast.Name)
    ):
        raise NotMapped("parts that are known only at run time")
    return args


def is_canvas(node: ast.AST, names: Mapping[str, str]) -> bool:
    """Return whether an expression is a chain, a group or a chord. `names` are the imported names with their paths."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (node.left, node.right)
        return any(is_canvas(side, names) or _is_signature(side) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Call):
        return is_canvas(node.func, names)
    name = called(node)
    if name not in _CANVAS:
        return False
    if isinstance(node.func, ast.Name):
        return names.get(node.func.id, "").startswith("celery")
    return isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in ("celery", "canvas")


def _started(node: ast.expr) -> ast.expr:
    """Return the canvas that a call without arguments starts: `chain(...)` for `chain(...)()`. Raises NotMapped for a
    call with arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Call):
        return node
    if called(node.func) == "chord" and len(node.func.args) == 1 and not node.func.keywords:
        return node  # `chord(header)(body)`: the argument is the body, and starts nothing
    if node.args or node.keywords:
        raise NotMapped("a canvas that is started with arguments")
    return node.func


def _is_signature(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("s", "si")
    )
