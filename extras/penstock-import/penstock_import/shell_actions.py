"""Actions of StackStorm's shell runners as functions: the same command line, environment, directory and result."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from penstock_import.consumed import Node
from penstock_import.wanted_text import NotMapped

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
    """Run a command line as StackStorm's local runner does, in bash, and return what it returns. Raises
    ActionFailed if the command fails. The processes of a command end with its time limit, or with the attempt."""
    try:
        attempt = current()
    except OutsideRun:
        attempt = None
    ends_at = math.inf if timeout is None else time.monotonic() + timeout
    ran = subprocess.Popen(
        [*(("sudo", "-n", "-E", "-H", "--") if sudo else ()), "bash", "-c", command],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **{name: str(value) for name, value in (env or {}).items()}},
        start_new_session=True,
    )
    error = stdout = None
    while stdout is None:
        try:
            stdout, stderr = ran.communicate(timeout=0.1)
        except subprocess.TimeoutExpired:
            if time.monotonic() >= ends_at or (attempt is not None and attempt.cancelled):
                stdout, stderr = end_session(ran, sudo)
                error = f"Action failed to complete in {timeout} seconds" if timeout else "The attempt has ended"
    succeeded = error is None and ran.returncode == 0
    result = {"failed": not succeeded, "succeeded": succeeded, "return_code": -9 if error else ran.returncode}
    for name, text in (("stdout", stdout), ("stderr", stderr)):
        text = text.removesuffix("\\n").removesuffix("\\r")
        try:
            result[name] = json.loads(text) if text else text
        except ValueError:
            result[name] = text
    if error:
        raise ActionTimedOut(result | {"error": error}, error, "timeout")
    if not succeeded:
        raise ActionFailed(result, f"exit code {ran.returncode}: {stderr[-2000:]}")
    return result
'''

END_SESSION = '''
def end_session(ran, sudo):
    """End the processes of a command, by force after two seconds, and return what it has written."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        command = [*(("sudo", "-n") if sudo else ()), "kill", f"-{number.name[3:]}", "--", f"-{ran.pid}"]
        subprocess.run(command, stderr=subprocess.DEVNULL)
        try:
            return ran.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            pass
    return "", ""  # a process in a session of its own holds the output
'''

ACTION_FAILED = '''
class ActionFailed(Exception):
    """The failure of an action, with the result that StackStorm keeps of it."""

    def __init__(self, result, message="", status="failed"):
        super().__init__(message or str(result))
        self.result, self.status = result, status


class ActionTimedOut(ActionFailed):
    """The failure of a command that took too long, which StackStorm keeps apart from others."""
'''

KEPT = '''
def kept(function, parameters):
    """Return how an action ended and what StackStorm keeps of it. The workflow reads both, after a failure too."""
    try:
        return {"status": "succeeded", "result": function(**parameters)}
    except ActionFailed as failure:
        return {"status": failure.status, "result": failure.result}
'''

KEPT_PYTHON = '''
def kept_python(function, parameters):
    """Do what `kept` does, for an action in Python: StackStorm keeps the text of an exception as `stderr`."""
    try:
        return kept(function, parameters)
    except (NonRetryable, Retry):
        raise
    except Exception:
        failure = {"stdout": "", "stderr": traceback.format_exc(), "exit_code": 1, "result": "None"}
        return {"status": "failed", "result": failure}
'''

PYTHON_RESULT = '''
def python_result(output):
    """Return what StackStorm's Python runner gives for what `run` returned: a result, or whether it succeeded and its
    result."""
    succeeded, result = output if isinstance(output, tuple) and len(output) == 2 else (None, output)
    if succeeded not in (None, True, False):
        raise TypeError(f"run() returned {succeeded!r} as whether it succeeded: return True or False")
    whole = {"result": result, "exit_code": 0, "stdout": "", "stderr": ""}
    if succeeded is False:
        raise ActionFailed(whole)
    return whole
'''

WITH_DEFAULTS = '''
def with_defaults(parameters, defaults):
    """Return the parameters, with the defaults of missing and null parameters, as in StackStorm."""
    return defaults | {name: value for name, value in parameters.items() if value is not None or name not in defaults}
'''

WITH_FLOATS = '''
def with_floats(parameters, names):
    """Return the parameters, with these numbers as StackStorm passes them: 5 becomes 5.0."""
    return parameters | {name: float(parameters[name]) for name in names if parameters.get(name) is not None}
'''

RENDERED = '''
def rendered(template, parameters, names):
    """Return a command line in which Jinja has put parameters, as StackStorm does; those not given are None."""
    values = {name: parameters.get(name) for name in names}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(values)
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
        elif kind == "integer":
            words.append(str(int(value)) if value else "")  # StackStorm writes 0 as an empty argument, too
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
    needed = ["ActionFailed", "end_session", "run_shell", "_options"]
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
        '    return run_shell(f"{shlex.quote(script)} {arguments}".strip(), **options)',
    ]
    return "\n".join(lines) + "\n", [
        "ActionFailed",
        "end_session",
        "run_shell",
        "script_arguments",
        "_options",
    ]


def with_numbers(source: str, names: list[str]) -> str:
    """Return the source of a function of `parameters` that begins with the conversion of these numbers to floats."""
    head, _, body = source.partition("\n")
    return f"{head}\n    parameters = with_floats(parameters, {names!r})\n{body}"


def filled(source: str, defaults: dict[str, Any]) -> str:
    """Return the source of a function of `parameters` that begins with the defaults of those. Penstock hands a function what
    its caller gives, and no default of the schema."""
    head, _, body = source.partition("\n")
    return f"{head}\n    parameters = with_defaults(parameters, {defaults!r})\n{body}"


def _refuse_unknown_names(template: str, parameters: set[str]) -> None:
    try:
        tree = _JINJA.parse(template)
    except TemplateSyntaxError as error:
        raise NotMapped(f"it is not Jinja: {error.message}") from None
    for used in tree.find_all(nodes.Filter):
        if used.name not in _JINJA.filters:
            raise NotMapped(f"the filter {used.name}")
    for test in tree.find_all(nodes.Test):
        if test.name not in _JINJA.tests:
            raise NotMapped(f"the test {test.name}")
    unknown = meta.find_undeclared_variables(tree) - parameters
    if unknown:
        raise NotMapped(f"it uses names that are not parameters: {', '.join(sorted(unknown))}")


OPTIONS = '''
def _options(parameters):
    """Take the parameters of the runner out of those of an action."""
    options = {name: parameters.pop(name) for name in ("cwd", "env", "sudo", "timeout") if name in parameters}
    if options.get("timeout") is not None:
        options["timeout"] = float(options["timeout"])
    for name in ("kwarg_op", "sudo_password"):
        parameters.pop(name, None)
    return {name: value for name, value in options.items() if value is not None}
'''
FUNCTIONS = {
    "ActionFailed": ACTION_FAILED,
    "kept": KEPT,
    "kept_python": KEPT_PYTHON,
    "python_result": PYTHON_RESULT,
    "end_session": END_SESSION,
    "run_shell": RUN_SHELL,
    "rendered": RENDERED,
    "with_defaults": WITH_DEFAULTS,
    "with_floats": WITH_FLOATS,
    "script_arguments": SCRIPT_ARGUMENTS,
    "_options": OPTIONS,
}
