"""Actions of StackStorm's shell runners as functions: the same command line, environment, directory and result."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from penstock.cli.imports.consumed import Node
from penstock.cli.imports.wanted_text import NotMapped

RUNNER_PARAMETERS: dict[str, Any] = {
    "cmd": None,
    "cwd": None,
    "env": None,
    "kwarg_op": "--",
    "sudo": False,
    "sudo_password": None,
    "timeout": 60,
}
"""Parameters of the local runners, with their defaults."""
_JINJA = Environment()

RUN_SHELL = '''
def run_shell(command, *, cwd=None, env=None, sudo=False, timeout=None):
    """Run a command line as StackStorm's local runner does, and return what it returns. A command that fails raises."""
    if sudo:
        command = f"sudo -n -E -H -- bash -c {shlex.quote(command)}"
    ran = subprocess.run(
        command, shell=True, cwd=cwd, timeout=timeout, capture_output=True, text=True,
        env={**os.environ, **{name: str(value) for name, value in (env or {}).items()}},
    )
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}: {ran.stderr[-2000:]}")
    result = {"failed": False, "succeeded": True, "return_code": 0}
    for name, text in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        text = text.removesuffix("\\n").removesuffix("\\r")
        try:
            result[name] = json.loads(text) if text else text
        except ValueError:
            result[name] = text
    return result
'''

RENDERED = '''
def rendered(template, parameters, names):
    """Return a command line in which Jinja has put parameters, as StackStorm does; those not given are None."""
    values = {name: parameters.get(name) for name in names}
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template).render(values)
'''

SCRIPT_ARGUMENTS = '''
def script_arguments(parameters, positional, operator="--"):
    """Return the arguments of a script as StackStorm writes them: named ones first, then those with a position."""
    words = []
    for name, value in parameters.items():
        if name in positional or value is None or value == "" or value is False:
            continue
        words.append(f"{operator}{name}" if value is True else f"{operator}{name}={value}")
    for name, kind in positional.items():
        value = parameters.get(name)
        if kind == "boolean":
            words.append("" if value is None else str(int(bool(value))))
        elif kind == "array":
            words.append(",".join(map(str, value or [])))
        elif kind == "object":
            words.append(json.dumps(value) if value else "")
        else:
            words.append("" if value is None else str(value))
    return " ".join(shlex.quote(word) for word in words)
'''


def command_function(
    name: str, template: str | None, parameters: set[str], fixed: bool
) -> tuple[str, list[str]]:
    """Return the source of a function for a `cmd`, and the functions that it calls. Without a template, or where that is not
    fixed, the command is a parameter itself. Raises NotMapped for a template that reads more than the action's parameters."""
    needed = ["run_shell", "_options"]
    body = ["    options = _options(parameters)"]
    if template is not None and any(mark in template for mark in ("{{", "{%", "{#")):
        _refuse_unknown_names(template, parameters)
        needed.append("rendered")
    supplied = repr(template) if fixed else 'parameters.pop("cmd")'
    body.append(f"    command = {supplied}")
    if "rendered" in needed:
        body.append(f"    command = rendered(command, parameters, {sorted(parameters)!r})")
    body.append("    return run_shell(command, **options)")
    return "\n".join([f"def {name}_(**parameters):", *body]) + "\n", needed


def script_function(name: str, script: str, source: Node, operator: str) -> tuple[str, list[str]]:
    """Return the source of a function that runs a script of the pack, and the functions that it calls."""
    positions: list[tuple[int, str, str]] = []
    declared = source.get("parameters")
    for parameter, about in declared.items() if declared is not None else []:
        if parameter in RUNNER_PARAMETERS:
            continue
        position = about.get("position")
        kind = about.get("type")
        if position is not None and isinstance(position.peek(), int):
            positions.append((position.peek(), parameter, str(kind.peek()) if kind is not None else "string"))
    positional = {parameter: kind for _, parameter, kind in sorted(positions)}
    lines = [
        f"def {name}_(**parameters):",
        "    options = _options(parameters)",
        f"    script = str(pathlib.Path(__file__).parent / {script!r})",
        f"    arguments = script_arguments(parameters, {positional!r}, {operator!r})",
        '    return run_shell(f"bash {shlex.quote(script)} {arguments}".strip(), **options)'
        if script.endswith(".sh")
        else '    return run_shell(f"{shlex.quote(script)} {arguments}".strip(), **options)',
    ]
    return "\n".join(lines) + "\n", ["run_shell", "script_arguments", "_options"]


def _refuse_unknown_names(template: str, parameters: set[str]) -> None:
    try:
        tree = _JINJA.parse(template)
    except TemplateSyntaxError as error:
        raise NotMapped(f"it is no Jinja: {error.message}") from None
    unknown = meta.find_undeclared_variables(tree) - parameters
    if unknown:
        raise NotMapped(f"it reads {', '.join(sorted(unknown))}")
    for used in tree.find_all(nodes.Filter):
        if used.name not in _JINJA.filters:
            raise NotMapped(f"the filter {used.name}")


OPTIONS = '''
def _options(parameters):
    """Take the parameters of the runner out of those of an action."""
    options = {name: parameters.pop(name) for name in ("cwd", "env", "sudo") if name in parameters}
    for name in ("kwarg_op", "sudo_password"):
        parameters.pop(name, None)
    return {name: value for name, value in options.items() if value is not None}
'''
FUNCTIONS = {
    "run_shell": RUN_SHELL,
    "rendered": RENDERED,
    "script_arguments": SCRIPT_ARGUMENTS,
    "_options": OPTIONS,
}
