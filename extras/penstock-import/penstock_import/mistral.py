"""The conversion of a Mistral workflow to a tree of Orquesta, which `orquesta` maps. Only parts with the same meaning in both
are converted. Any other part refuses the whole workflow.

The meaning is that of Mistral's own engine. Conditions see what their task published. Published values do not see each
other. An item has no parts. A failure stops only what depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from penstock_import import yaql_parser as yaql
from penstock_import.consumed import Node
from penstock_import.wanted_text import NotMapped

MISTRAL = "mistral-v2"
_OF_RUNNER = frozenset({"context", "task", "task_name"})
"""The parameters of the runner that change what is run."""
_NO_INPUT = frozenset({"workflow", "skip_notify"})
"""The other parameters of the runner, which no workflow gets."""
_OF_WORKFLOW = frozenset({"type", "description", "tags", "input", "vars", "output", "task-defaults", "tasks"})
_OF_TASK = frozenset(
    {
        "action",
        "description",
        "input",
        "publish",
        "on-success",
        "on-error",
        "on-complete",
        "join",
        "with-items",
        "retry",
        "wait-before",
    }
)
_CLAUSES = frozenset({"on-success", "on-error", "on-complete"})
_COMMANDS = frozenset({"fail", "noop"})
FAILS_AT_THE_END = "fails_at_the_end"
"""The target of a transition that lets the workflow go on, and fail as it ends."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ACTION = re.compile(r"[\w.-]+", re.ASCII)
_BLOCK = re.compile(r"<%.*?%>|\{\{.*?\}\}|\{%|\{#", re.DOTALL)
_ITEMS = re.compile(r"\s*(\w+)\s+in\s+(<%[^%]*%>|\{\{[^}]*\}\})\s*")
_INLINE = re.compile(r"""\s+([A-Za-z_]\w*)=("[^"\\]*"|'[^'\\]*'|<%.*?%>|\{\{.*?\}\})(?=\s|$)""")
_WORD_OF_YAQL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\$\s*\.\s*([A-Za-z_]\w*)|\$""")
_WORD_OF_JINJA = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b_\s*\.\s*([A-Za-z_]\w*)|(?<![\w.])_(?!\w)"""
)
_OWN_ID = re.compile(r"""((?:^|[^'"\w.])\s*)env\(\)\.st2_execution_id\b(?!['"])""")
_PLAIN_FUNCTIONS = frozenset(
    {"bool", "dict", "float", "get", "int", "isList", "isString", "keys", "len", "list", "str", "task", "toLower",
     "toUpper", "trim", "values"}
)  # fmt: skip
"""The functions and methods of YAQL that evaluate no argument for each item. In others, `$` may be an item."""
_PLAIN_NAMES = re.compile(
    r"(?<![\w.|])(ctx|env|execution|executions|tasks|item|result|succeeded|failed|completed|st2kv)\b"
)


def orquesta_tree(root: Node, ref: str, declared: Mapping[str, Any]) -> Node:
    """Return the Orquesta workflow with the meaning of a Mistral workflow. `declared` are the parameters of the action, by
    name. Raises NotMapped for a part without an equal in Orquesta."""
    if of_runner := _OF_RUNNER & declared.keys():
        raise NotMapped(f"the parameter {min(of_runner)}, which is one of the runner")
    for key, line in root.repetitions():
        raise NotMapped(f"the key {key} in line {line}, which occurs twice")
    definition = _definition(root, ref, declared.get("workflow"))
    parameters = [name for name in declared if name not in _NO_INPUT]
    _refuse_other_keys(definition, _OF_WORKFLOW, "the workflow")
    if definition.text("type", "direct") != "direct":
        raise NotMapped(f"a workflow of the type {definition.text('type')}")
    tasks = definition.get("tasks")
    if tasks is None or not tasks.items():
        raise NotMapped("a workflow without tasks")
    if (defaults := definition.get("task-defaults")) is not None:
        tasks = Node(tasks.line, {name: _with_clauses(name, task, defaults) for name, task in tasks.items()})
    published = {name for _, task in tasks.items() for name, _ in (task.get("publish") or Node(1)).items()}
    own = {name for name, _ in (definition.get("vars") or Node(1)).items()}
    if "st2" in {*parameters, *published, *own}:
        raise NotMapped("a variable with the name st2")
    _refuse_lost_values(tasks)
    with_items = {name for name, task in tasks.items() if task.has("with-items")}
    children: dict[str, Node] = {"description": Node(1, None, definition.text("description"))}
    inputs = definition.get("input") or Node(definition.line, [])
    children["input"] = _inputs(inputs)
    if different := set(parameters) ^ {str(part.peek()) for part in children["input"].parts()}:
        raise NotMapped(f"{min(different)}, which only the action or only the workflow declares")
    variables = definition.get("vars")
    if variables is not None:
        children["vars"] = _variables(variables, parameters)
    if (output := definition.get("output")) is not None:
        if not output.is_mapping:
            raise NotMapped("an output that is not a mapping")
        _refuse_neighbours(output, "`output`")
        pairs = [Node(node.line, {name: _mapped(node, with_items)}) for name, node in output.items()]
        children["output"] = Node(output.line, pairs)
    at_start = {*parameters, *own}
    children["tasks"] = Node(
        tasks.line, {name: _task(name, task, tasks, with_items, at_start) for name, task in tasks.items()}
    )
    return Node(1, children)


def _definition(root: Node, ref: str, first: Any) -> Node:
    """Return the workflow that the runner starts of a document, which may be a workbook. Of several workflows it starts that
    of the parameter `workflow`. `first` is the declaration of that parameter."""
    keys = {name for name, _ in root.items()} - {"version"}
    workflows = root.get("workflows")
    if (
        workflows is not None
        and root.text("name") == ref
        and keys <= {"name", "description", "tags", "workflows"}
    ):
        definitions = [definition for _, definition in workflows.items()]
        is_fixed = isinstance(first, Mapping) and first.get("immutable") is True
        if len(definitions) > 1 and is_fixed and "." in (default := str(first.get("default"))):
            name = default.rpartition(".")[2]
            if default == f"{ref}.{name}":
                definitions = [definition for key, definition in workflows.items() if key == name]
    else:
        definitions = [definition for name, definition in root.items() if keys == {ref} and name == ref]
    if root.text("version") != "2.0" or len(definitions) != 1:
        raise NotMapped(f"a document that is not version 2.0 with the one workflow {ref}")
    if not definitions[0].is_mapping:
        raise NotMapped("a workflow that is not a mapping")
    return definitions[0]


def _refuse_other_keys(node: Node, keys: frozenset[str], subject: str) -> None:
    for key, child in node.items():
        if key not in keys:
            raise NotMapped(f"`{key}` of {subject} in line {child.line}")


def _inputs(node: Node) -> Node:
    """Return the inputs without their defaults. The runner passes all parameters of the action, null for those without a
    value, so that Mistral uses no default. Until 2016 it merged one that is a mapping into the value."""
    if not node.is_list:
        raise NotMapped(f"an input in line {node.line}, which is not a list")
    inputs: list[Node] = []
    for part in node.parts():
        name = part.peek()
        if part.is_mapping:
            [*pairs] = part.items()
            if len(pairs) != 1 or pairs[0][1].is_mapping:
                raise NotMapped(f"an input in line {part.line} with a default that is a mapping")
            name = pairs[0][0]
        if not isinstance(name, str):
            raise NotMapped(f"an input in line {part.line} without a name")
        inputs.append(Node(part.line, None, name))
    return Node(node.line, inputs)


def _variables(node: Node, parameters: Collection[str]) -> Node:
    """Return the variables of a workflow. Mistral computes all of them from the input alone, and Orquesta in their order."""
    if not node.is_mapping:
        raise NotMapped(f"`vars` in line {node.line}, which is not a mapping")
    _refuse_neighbours(node, "`vars`")
    for name, child in node.items():
        if name in parameters:
            raise NotMapped(f"the variable {name} in line {child.line}, which has the name of an input")
    return Node(node.line, [Node(child.line, {name: _mapped(child, set())}) for name, child in node.items()])


def _with_clauses(name: str, task: Node, defaults: Node) -> Node:
    """Return a task with the clauses of `task-defaults` that it has not itself. A task does not start itself by them."""
    _refuse_other_keys(defaults, _CLAUSES, "`task-defaults`")
    if not task.is_mapping:
        return task
    children = dict(task.items())
    for key, child in defaults.items():
        own = task.get(key)
        parts = child.parts() if child.is_list else [child]
        targets = [part for part in parts if part.peek() != name and name not in dict(part.items())]
        if targets and (own is None or not own.peek()):
            children[key] = Node(child.line, targets)
    return Node(task.line, children)


def _refuse_lost_values(tasks: Node) -> None:
    """Raise NotMapped for a variable that several tasks publish before a join. There Mistral merges the whole contexts of the
    branches, so that a branch with an older value may win."""
    if not any(task.has("join") for _, task in tasks.items()):
        return
    writers: dict[str, str] = {}
    for name, task in tasks.items():
        for variable, child in (task.get("publish") or Node(1)).items():
            if writers.setdefault(variable, name) != name:
                raise NotMapped(
                    f"{variable} in line {child.line}, which {writers[variable]} and {name} publish in a workflow with a join"
                )


# -- tasks ------------------------------------------------------------------------------------------------------------


def _task(name: str, task: Node, tasks: Node, with_items: set[str], parameters: Collection[str]) -> Node:
    if _NAME.fullmatch(name) is None or name in {*_COMMANDS, FAILS_AT_THE_END} or not task.is_mapping:
        raise NotMapped(f"the task {name}, which is not a mapping or whose name is not a word")
    _refuse_other_keys(task, _OF_TASK, f"the task {name}")
    children: dict[str, Node] = {}
    item = ""
    if (items := task.get("with-items")) is not None:
        item, children["with"] = _items(name, items, with_items)
    action, inputs = _action(name, task, with_items, item)
    children["action"] = action
    if inputs is not None:
        children["input"] = inputs
    if (join := task.get("join")) is not None:
        if join.peek() != "all" or task.has("on-error") or task.has("on-complete"):
            raise NotMapped(f"the join of {name} in line {join.line}, which is not just `all`")
        children["join"] = Node(join.line, None, "all")
    if (retry := task.get("retry")) is not None:
        children["retry"] = _retry(name, retry)
    if (pause := task.get("wait-before")) is not None:
        children["delay"] = _number(pause, f"`wait-before` of {name}")
    if steps := list(_steps(name, task, tasks, with_items, parameters)):
        children["next"] = Node(task.line, steps)
    return Node(task.line, children)


def _items(name: str, node: Node, with_items: set[str]) -> tuple[str, Node]:
    """Return the name of an item, and the list. Orquesta splits an item that has a name, so that it gets none."""
    parts = node.parts() if node.is_list else [node]
    match = _ITEMS.fullmatch(str(parts[0].peek())) if len(parts) == 1 else None
    if match is None:
        raise NotMapped(f"`with-items` of {name} in line {node.line}, which is not one list")
    return match[1], Node(node.line, None, _text(match[2], node.line, with_items))


def _action(name: str, task: Node, with_items: set[str], item: str) -> tuple[Node, Node | None]:
    """Return the action of a task and its input, which may stand behind the action."""
    node, inputs = task.get("action"), task.get("input")
    words = node.peek() if node is not None else None
    if node is None and inputs is None and not task.has("with-items"):
        return Node(task.line, None, "core.noop"), None  # Mistral runs `std.noop`
    if node is None or not isinstance(words, str):
        raise NotMapped(f"the task {name} in line {task.line}, which has no action")
    match = _ACTION.match(words)
    ref = match[0] if match is not None else ""
    inline_text = words[len(ref) :]
    values = {pair[1]: _unquoted(pair[2]) for pair in _INLINE.finditer(inline_text)}
    if not ref or _INLINE.sub("", inline_text).strip() or (values and inputs is not None):
        raise NotMapped(
            f"the action of {name} in line {node.line}, which is computed or has an unusual input"
        )
    ref = "core.noop" if ref == "std.noop" else ref
    if ref.startswith("std."):
        raise NotMapped(f"the action {ref} of {name} in line {node.line}")
    inline = Node(node.line, {key: Node(node.line, None, value) for key, value in values.items()})
    mapped = _mapped(inputs if inputs is not None else inline, with_items, item)
    if not mapped.is_mapping:
        raise NotMapped(f"the input of {name} in line {mapped.line}, which is not a mapping")
    return Node(node.line, None, ref), mapped if mapped.items() else None


def _unquoted(text: str) -> str:
    return text[1:-1] if text[0] in "\"'" else text


def _retry(name: str, node: Node) -> Node:
    _refuse_other_keys(node, frozenset({"count", "delay"}), f"`retry` of {name}")
    if not node.is_mapping or not node.has("count"):
        raise NotMapped(f"`retry` of {name} in line {node.line}")
    return Node(node.line, {key: _number(child, f"`retry` of {name}") for key, child in node.items()})


def _number(node: Node, subject: str) -> Node:
    value = node.peek()
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise NotMapped(f"{subject} in line {node.line}, which is not a number")
    return Node(node.line, None, value)


# -- transitions ------------------------------------------------------------------------------------------------------


def _steps(
    name: str, task: Node, tasks: Node, with_items: set[str], parameters: Collection[str]
) -> Iterator[Node]:
    """Yield the transitions of Orquesta: the published values, and the tasks that start anyway. Then one for each task with
    a condition, which gets the published values, too. What `on-complete` starts after a failure does not handle it."""
    publish = task.get("publish")
    pairs = _published(name, publish, with_items) if publish is not None else []
    always, guarded_always = _targets(name, "on-complete", task, tasks)
    started, guarded = _targets(name, "on-success", task, tasks)
    _refuse_twice(name, [*started, *always], [*guarded, *guarded_always])
    if pairs or started or always:
        yield _step(task, "<% succeeded() %>", pairs, [*started, *always])
    for target, condition in (*guarded, *guarded_always):
        yield _step(task, _condition(name, task, tasks, condition, with_items, parameters), pairs, [target])
    started, guarded = _targets(name, "on-error", task, tasks)
    if guarded:
        raise NotMapped(f"`on-error` of {name} in line {guarded[0][1].line} with a condition")
    _refuse_twice(name, [*started, *always], [])
    for target, condition in guarded_always:
        if started or target != "fail":  # without `on-error`, the workflow fails after a failure anyway
            raise NotMapped(f"`on-complete` of {name} in line {condition.line} with a condition")
    unhandled = [target for target in always if target != "noop"]
    if started:
        yield _step(task, "<% failed() %>", [], [*started, *always])
    elif unhandled:  # `on-complete` handles no failure
        yield _step(task, "<% failed() %>", [], [*unhandled, FAILS_AT_THE_END])


def _refuse_twice(name: str, started: list[str], guarded: list[tuple[str, Node]]) -> None:
    if len(started) != len(set(started)) or {target for target, _ in guarded} & set(started):
        raise NotMapped(f"{name}, which starts a task twice")


def _step(task: Node, when: str, pairs: list[Node], targets: list[str]) -> Node:
    children = {"when": Node(task.line, None, when)}
    if pairs:
        children["publish"] = Node(pairs[0].line, list(pairs))
    if targets:
        children["do"] = Node(task.line, [Node(task.line, None, target) for target in targets])
    return Node(task.line, children)


def _published(name: str, node: Node, with_items: set[str]) -> list[Node]:
    """Return the published values."""
    if not node.is_mapping:
        raise NotMapped(f"`publish` of {name} in line {node.line}, which is not a mapping")
    _refuse_neighbours(node, f"`publish` of {name}")
    return [Node(child.line, {key: _mapped(child, with_items)}) for key, child in node.items()]


def _refuse_neighbours(node: Node, subject: str) -> None:
    """Raise NotMapped for a value that reads the name of another one. Orquesta evaluates them in order, so that a later one
    sees the earlier ones."""
    for key, child in node.items():
        if _NAME.fullmatch(key) is None or _names_in(child.peek()) & (node.peek().keys() - {key}):
            raise NotMapped(
                f"{subject} in line {child.line}, which reads a value that is published beside it"
            )


def _targets(name: str, key: str, task: Node, tasks: Node) -> tuple[list[str], list[tuple[str, Node]]]:
    """Return the names that a clause starts without and with a condition."""
    node = task.get(key)
    parts = [] if node is None else node.parts() if node.is_list else [node]
    started: list[str] = []
    guarded: list[tuple[str, Node]] = []
    for part in parts:
        if isinstance(part.peek(), str):
            started.append(part.peek())
        elif len(part.items()) == 1 and isinstance(part.items()[0][1].peek(), str):
            guarded += part.items()
        else:
            raise NotMapped(f"`{key}` of {name} in line {part.line}")
    for target in (*started, *(target for target, _ in guarded)):
        if not tasks.has(target) and target not in _COMMANDS:
            raise NotMapped(f"`{key}` of {name}, which starts {target}")
    return started, guarded


def _condition(
    name: str, task: Node, tasks: Node, node: Node, with_items: set[str], parameters: Collection[str]
) -> str:
    """Return the condition with the outcome. Orquesta evaluates it before it publishes, and Mistral after that, so that
    the expression of a published value stands in its place."""
    text = str(node.peek()).strip()
    if _BLOCK.fullmatch(text) is None:
        raise NotMapped(f"the condition of {name} in line {node.line}, which is not one expression")
    published = task.get("publish") or Node(1, {})
    published_elsewhere = [  # a mapping is merged into the one that it replaces
        key
        for other, entry in tasks.items()
        if other != name and (child := entry.get("publish")) is not None
        for key, _ in child.items()
    ]
    is_yaql = text.startswith("<%")

    def inlined(match: re.Match[str]) -> str:
        value = published.get(match[1] or "")
        if value is None:
            return match[0]
        expression = str(value.peek())
        is_alike = _BLOCK.fullmatch(expression) is not None and expression.startswith("<%") == is_yaql
        if (
            not is_alike
            or match[1] in (*parameters, *published_elsewhere)
            or _names_in(expression) & published.peek().keys()
        ):
            raise NotMapped(f"the condition of {name} in line {node.line}, which reads what {name} publishes")
        return f"({expression[2:-2].strip()})"

    text = text[:2] + (_WORD_OF_YAQL if is_yaql else _WORD_OF_JINJA).sub(inlined, text[2:-2]) + text[-2:]
    inner = _text(text, node.line, with_items)[2:-2].strip()
    return f"{text[:2]} succeeded() and ({inner}) {text[-2:]}"


# -- expressions ------------------------------------------------------------------------------------------------------


def _mapped(node: Node, with_items: set[str], item: str = "") -> Node:
    """Return a copy of a value with its expressions as Orquesta writes them."""
    if isinstance(node.children, dict):
        for key in node.children:
            if _BLOCK.search(key):
                raise NotMapped(f"the key {key} in line {node.line}")
        return Node(node.line, {key: _mapped(child, with_items, item) for key, child in node.items()})
    if isinstance(node.children, list):
        return Node(node.line, [_mapped(child, with_items, item) for child in node.parts()])
    if not isinstance(node.scalar, str):
        return Node(node.line, None, node.scalar)
    return Node(node.line, None, _text(node.scalar, node.line, with_items, item))


def _text(text: str, line: int, with_items: set[str], item: str = "") -> str:
    """Return a text with its expressions as Orquesta writes them. Mistral renders a text with Jinja in one piece, which
    drops its last line break, and Orquesta renders each expression alone."""
    blocks = _BLOCK.findall(text)
    if any(block.startswith("{") for block in blocks):
        if _BLOCK.fullmatch(text.strip()) and text.strip() != text:
            raise NotMapped(
                f"an expression of Jinja in line {line} with spaces around it, which makes its value a text"
            )
        text = text.removesuffix("\n")
    if "\r" in text and blocks:
        raise NotMapped(f"an expression beside a carriage return in line {line}")

    def replaced(match: re.Match[str]) -> str:
        block = match[0]
        if block in ("{%", "{#"):
            raise NotMapped(f"a block of Jinja in line {line}")
        if "\n" in block:
            raise NotMapped(f"an expression over several lines in line {line}")
        inner = block[2:-2]
        is_yaql = block.startswith("<%")
        if not is_yaql and (inner[:1] in ("-", "+") or inner[-1:] == "-"):
            raise NotMapped(f"the expression {block} in line {line}, which removes the spaces around it")
        if refused := _refused_part(_OWN_ID.sub(r"\g<1>0", inner), is_yaql, with_items):
            raise NotMapped(f"the expression {block} in line {line}: {refused}")
        renamed = _renamed(inner, is_yaql, item)
        return block[:2] + _OWN_ID.sub(r"\g<1>ctx().st2.action_execution_id", renamed) + block[-2:]

    return _BLOCK.sub(replaced, text)


def _renamed(text: str, is_yaql: bool, item: str) -> str:
    def renamed(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        if name == item:
            return "item()"
        return f"ctx({name})" if is_yaql else f"ctx('{name}')"

    return (_WORD_OF_YAQL if is_yaql else _WORD_OF_JINJA).sub(renamed, text)


def _refused_part(text: str, is_yaql: bool, with_items: set[str]) -> str:
    """Return why an expression has no equal in Orquesta; an empty text if it has one."""
    words = _WORD_OF_YAQL if is_yaql else _WORD_OF_JINJA
    if any(match[0] in ("$", "_") for match in words.finditer(text)):
        return "the whole context"
    bare = re.sub(r"""'[^']*'|"[^"]*\"""", "''", text)
    if (name := _PLAIN_NAMES.search(bare)) is not None:
        return f"`{name[1]}`"
    if any(re.search(rf"\btask\(\s*['\"]?{re.escape(task)}['\"]?\s*\)", text) for task in with_items):
        return "the result of a task with items"
    if re.search(r"\btask\(\s*\)", text) or re.search(r"\btask\([^)]*\)(?!\s*\.\s*result\b)", text):
        return "a part of a task beside its result"
    if is_yaql:
        try:
            calls = set(_calls(yaql.parse(text)))
        except yaql.YaqlSyntaxError as error:
            return str(error)
        if unknown := sorted(calls - _PLAIN_FUNCTIONS):
            return f"{unknown[0]}()"
    return ""


def _calls(node: Any) -> Iterator[str]:
    """Yield the names of the functions and methods that an expression calls."""
    if isinstance(node, yaql.Call):
        yield node.name
    values = (getattr(node, name) for name in getattr(node, "__dataclass_fields__", ()))
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        else:
            yield from _calls(value)


def _names_in(value: Any) -> set[str]:
    """Return the names of the context that the expressions in a value read."""
    if isinstance(value, Mapping):
        return {name for child in value.values() for name in _names_in(child)}
    if isinstance(value, list):
        return {name for child in value for name in _names_in(child)}
    return {
        match[1]
        for block in _BLOCK.findall(str(value))
        for words in (_WORD_OF_YAQL, _WORD_OF_JINJA)
        for match in words.finditer(block)
        if match[1] is not None
    }
