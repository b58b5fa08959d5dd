"""The conversion of a Python file of Cloacina (`cloaca`) to a module of Penstock: tasks that share a context,
workflows, cron schedules.

The file is parsed and not run. The code of a task is copied, since tasks of both systems get the same context.
Decorators and builders are written again from their parsed arguments. A part that uses `cloaca` and has no equivalent
becomes a gap with its line.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import InvalidInput, NotFound
from penstock_import.cloaca_names import CloacaNames, literal, pack_name
from penstock_import.cloaca_tasks import CloacaTask, imports_of, task_text
from penstock_import.project import GITIGNORE
from penstock_import.report import Report


@dataclass(slots=True)
class CloacaWorkflow:
    """A workflow as its builder describes it. `tasks` are names of functions; empty means all tasks of the file."""

    name: str
    line: int
    description: str = ""
    tasks: list[str] = field(default_factory=list)
    broken: bool = False
    """True if one of its tasks has the name of a task of another workflow."""


@dataclass(slots=True)
class CloacaModule:
    """The generated module. `code` are the copied parts, in their order."""

    name: str
    docstring: str = ""
    imports: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    workflows: list[str] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    ours: set[str] = field(default_factory=lambda: {"Pack"})

    @property
    def file(self) -> str:
        return f"{self.name}.py"

    def text(self) -> str:
        """Return the module as Python."""
        head = [f'"""{self.docstring}"""'] if self.docstring else []
        names = ", ".join(sorted(self.ours, key=lambda name: (name.islower(), name)))
        imports = [*self.imports, f"from penstock import {names}"]
        parts = [
            "\n".join(imports),
            f'pack = Pack("{self.name}")',
            *self.code,
            *self.workflows,
            *self.schedules,
        ]
        return "\n\n\n".join([*head, *parts]) + "\n"

    def write(self, folder: Path, source: str, report: Report) -> None:
        """Write the module, the report and a README into a folder that is empty or does not exist yet."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.file).write_text(self.text())
        (folder / "IMPORT.md").write_text(report.page(source))
        (folder / "README.md").write_text(
            f"# {self.name}\n\nImported from {source}; [IMPORT.md](IMPORT.md) lists the remaining work by hand.\n\n"
            f"    penstock lint {self.file}           # all that is wrong with it, at once\n"
            f"    penstock dev --module {self.file}   # run it: everything in this terminal, PostgreSQL included\n"
        )
        (folder / ".gitignore").write_text(GITIGNORE)


class CloacaFile:
    """A converter of one file. Parts that it does not convert become gaps."""

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise NotFound(f"there is no file {file}", hint="Name a Python file that imports cloaca.")
        self._text = file.read_text()
        try:
            self._tree = ast.parse(self._text)
        except SyntaxError as error:
            raise InvalidInput(
                f"{file}:{error.lineno}: it is not Python: {error.msg}", hint="Correct it, and import again."
            ) from None
        self._file = file.name
        self._lines = self._text.splitlines()
        self.report = Report()
        self.project = CloacaModule(pack_name(file.stem))
        self._name_in_package = _name_in_package(file)
        self._names = CloacaNames()
        self._tasks: dict[str, CloacaTask] = {}
        self._workflows: dict[str, CloacaWorkflow] = {}
        self._builders: dict[str, CloacaWorkflow] = {}
        self._runners: set[str] = set()
        self._mapped: set[str] = set()
        self._dropped: set[str] = set()
        self._used: dict[str, set[str]] = {}
        self._fires: list[tuple[str, str, str, str | None]] = []
        self._refs: dict[str, str] = {}

    def mapped(self) -> CloacaModule:
        """Return the module. Raises InvalidInput for a file that does not import cloaca."""
        self._names.read(self._tree)
        if not self._names.is_imported:
            raise InvalidInput(
                f"{self._file} does not import cloaca", hint="Name a file with tasks of Cloacina."
            )
        self.project.docstring = (
            (ast.get_docstring(self._tree) or "").replace("\\", "\\\\").replace('"""', "'''")
        )
        body = self._tree.body[1 if ast.get_docstring(self._tree) is not None else 0 :]
        for statement in body:
            self._statement(statement)
        self._write_workflows()
        self._write_schedules()
        for id, used in self._used.items():
            for name in sorted(used & (self._dropped | self._runners)):
                self._gap_at(
                    1, f"task {id} uses {name}, which the import omits", "Write code for its purpose."
                )
        self._note_jitter()
        return self.project

    # -- statements ----------------------------------------------------------------------------------------------

    def _statement(self, statement: ast.stmt, builder: CloacaWorkflow | None = None) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom():
                self._import(statement)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(statement, builder)
            case ast.With() if (flow := self._builder_of_with(statement)) is not None:
                for inner in statement.body:
                    self._statement(inner, flow)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                self._names.of(call.func) == "WorkflowBuilder"
            ):
                self._builders[name] = self._new_workflow(call)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if self._is_runner(call):
                self._runners.add(name)
                self._gap(statement, "the runner", "Start `penstock dev`, or an executor and workers.")
            case ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="build"))) if (
                name in self._builders
            ):
                pass  # the workflow was created where its builder begins
            case ast.Expr(value=ast.Call() as call):
                self._call(statement, call, builder)
            case ast.If() | ast.Try() | ast.For() | ast.With() if self._leads_to_cloaca(statement):
                self._inside(statement)
            case _:
                self._take_over(statement)

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            self.project.imports.insert(0, ast.unparse(statement))
        elif not self._names.is_import_of_cloaca(statement):
            self.project.imports.append(ast.unparse(statement))

    def _function(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, builder: CloacaWorkflow | None
    ) -> None:
        of_cloaca = [node for node in function.decorator_list if self._names.of(_called(node)) is not None]
        kinds = {self._names.of(_called(node)) for node in of_cloaca}
        tasks = [node for node in of_cloaca if self._names.of(_called(node)) == "task"]
        if len(tasks) == 1 and "trigger" not in kinds:
            self._task(function, tasks[0], builder)
        elif kinds == {"trigger"}:
            self._trigger(function, of_cloaca[0])
        elif of_cloaca:
            for node in of_cloaca:
                self._gap(
                    node,
                    f"@{ast.unparse(node)} of {function.name}",
                    "Penstock has no equivalent: write it by hand.",
                )
            self._dropped.add(function.name)
        elif (flow := self._constructed(function)) is not None:
            self._builders[function.name] = flow
        elif self._leads_to_cloaca(function):
            self._dropped.add(function.name)
            self._inside(function)
        else:
            self._take_over(function)

    def _take_over(self, statement: ast.stmt) -> None:
        """Copy a statement that does not use Cloacina, or record a gap for one that does."""
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if self._leads_to_cloaca(statement) or used & (self._dropped | self._runners):
            self._gap(
                statement,
                f"`{_short(ast.unparse(statement))}` uses Cloacina",
                "The import omits it: write code for its purpose.",
            )
            self._dropped |= {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            return
        self.project.code.append(self._source(statement))

    def _inside(self, statement: ast.stmt) -> None:
        """Search for known parts inside a statement that is left out, and record gaps for the rest."""
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and self._is_runner(node.value)
            ):
                self._runners |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        read_nodes: set[int] = set()
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and self._runner_call(node):
                read_nodes |= {id(inner) for inner in ast.walk(node)}
        lines_left = sorted(
            {
                node.lineno
                for node in ast.walk(statement)
                if isinstance(node, ast.Attribute | ast.Name)
                and id(node) not in read_nodes
                and (
                    self._names.of(node) is not None
                    or (isinstance(node, ast.Name) and node.id in self._runners)
                )
            }
        )
        for line in lines_left:
            self._gap_at(
                line,
                f"`{_short(self._lines[line - 1].strip())}`",
                "The import omits it: `penstock run`, `penstock executions` and a client do the work of a runner.",
            )

    # -- tasks and triggers --------------------------------------------------------------------------------------

    def _task(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        decorator: ast.expr,
        builder: CloacaWorkflow | None,
    ) -> None:
        self.report.found["tasks"] += 1
        gaps_before = len(self.report.gaps)
        task = CloacaTask.read(function, decorator, self._names, self._gap)
        other_decorators = []
        for node in function.decorator_list:
            if node is decorator:
                continue
            if self._names.of(_called(node)) is None:
                other_decorators.append(node)
            else:
                self._gap(
                    node,
                    f"@{ast.unparse(node)} of task {task.id}",
                    "Penstock has no equivalent: write it by hand.",
                )
        if task.id in self._tasks or task.function in {other.function for other in self._tasks.values()}:
            self._gap(
                function,
                f"there are two tasks {task.id!r}",
                "Import each workflow from its own file.",
            )
            if builder is not None:
                builder.broken = True
            return
        self._tasks[task.id] = task
        if task.id != task.theirs:
            self._gap(
                decorator,
                f"the task {task.theirs} is named {task.id} in Penstock",
                "Use the new name in all outside readers.",
            )
            gaps_before += 1
        if builder is not None:
            builder.tasks.append(task.function)
        source = self._edited(function, task.edits)
        self._used[task.id] = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        text = task_text(task, source, [ast.unparse(node) for node in other_decorators], self._gap)
        self.project.ours |= imports_of(task)
        self.project.code.append(text)
        if len(self.report.gaps) == gaps_before:
            self.report.mapped["tasks"] += 1
            self._mapped.add(task.id)

    def _lacking(self) -> set[str]:
        """Return the functions of tasks that depend on a task which no part of the file makes. Record a gap for each."""
        names = {*self._tasks, *(task.function for task in self._tasks.values())}
        lacking: set[str] = set()
        for task in self._tasks.values():
            for node, need in task.needs:
                if need not in names:
                    lacking.add(task.function)
                    self._gap(node, f"task {task.id} depends on {need}, which is not a task of this file",
                              "Write that task, or remove it from `dependencies`: until then nothing of the project can be "
                              "applied.")  # fmt: skip
            if task.function in lacking and task.id in self._mapped:
                self.report.mapped["tasks"] -= 1
        return lacking

    def _trigger(self, function: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> None:
        self.report.found["triggers"] += 1
        options = {
            keyword.arg: keyword.value
            for keyword in (decorator.keywords if isinstance(decorator, ast.Call) else [])
        }
        values = {name: literal(value) for name, value in options.items()}
        self._dropped.add(function.name)
        if isinstance(values.get("cron"), str) and isinstance(values.get("on"), str):
            for name in options.keys() - {"cron", "on", "timezone", "name", None}:
                self._gap(
                    decorator, f"{name} of trigger {function.name}", "Write it as `overlap` of the schedule."
                )
            ref = values.get("name") if isinstance(values.get("name"), str) else function.name
            self._schedule(str(ref), str(values["on"]), str(values["cron"]), values.get("timezone"))
            self.report.mapped["triggers"] += 1
            return
        self._gap(
            decorator,
            f"the poll trigger {function.name}",
            f"Write it with `@trigger(every={values.get('poll_interval') or '30s'!r})`: it returns a list of payloads. A rule "
            f"starts {values.get('on')!r} for each.",
        )

    # -- workflows and schedules ---------------------------------------------------------------------------------

    def _builder_of_with(self, statement: ast.With) -> CloacaWorkflow | None:
        for item in statement.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and self._names.of(call.func) == "WorkflowBuilder":
                flow = self._new_workflow(call)
                if isinstance(item.optional_vars, ast.Name):
                    self._builders[item.optional_vars.id] = flow
                return flow
        return None

    def _new_workflow(self, call: ast.Call) -> CloacaWorkflow:
        self.report.found["workflows"] += 1
        name = literal(call.args[0]) if call.args else None
        if not isinstance(name, str):
            self._gap(call, "a workflow with a computed name", "Name it in `workflow(...)` yourself.")
            name = f"workflow_{len(self._workflows) + 1}"
        for keyword in call.keywords:
            self._gap(call, f"{keyword.arg} of workflow {name}", "Name the tenant with each start.")
        return self._workflows.setdefault(name, CloacaWorkflow(name, call.lineno))

    def _constructed(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> CloacaWorkflow | None:
        """Return the workflow that a function builds and returns, if the function does nothing else."""
        flow: CloacaWorkflow | None = None
        for statement in function.body:
            match statement:
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                    self._names.of(call.func) == "WorkflowBuilder"
                ):
                    flow = self._builders[name] = self._new_workflow(call)
                case ast.Expr(value=ast.Call() as call) if flow is not None and self._builder_call(call):
                    continue
                case ast.Return() | ast.Assign() if flow is not None and _is_build(statement):
                    continue
                case _:
                    return None
        return flow

    def _builder_call(self, call: ast.Call) -> bool:
        """Handle a call of a builder's method. Return False for any other call."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name in self._builders:
                flow = self._builders[name]
            case _:
                return False
        value = literal(call.args[0]) if len(call.args) == 1 else None
        if method == "description" and isinstance(value, str):
            flow.description = value
        elif method == "add_task" and isinstance(value, str):
            flow.tasks.append(value)
        elif method == "add_task" and len(call.args) == 1 and isinstance(call.args[0], ast.Name):
            flow.tasks.append(call.args[0].id)
        else:
            self._gap(call, f"`{_short(ast.unparse(call))}`", "Write it in the description, or leave it out.")
        return True

    def _call(self, statement: ast.stmt, call: ast.Call, builder: CloacaWorkflow | None) -> None:
        if self._builder_call(call) or self._runner_call(call):
            return
        if self._names.of(call.func) in ("register_workflow_constructor", "register_workflow"):
            return  # not needed: every workflow of the file is declared
        self._take_over(statement)

    def _is_runner(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Attribute) and self._names.of(function.value) == "DefaultRunner":
            return True
        return self._names.of(function) == "DefaultRunner"

    def _runner_call(self, call: ast.Call) -> bool:
        """Handle a call of a runner that declares a schedule. Return False for any other call."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr="register_cron_workflow") if (
                name in self._runners
            ):
                pass
            case _:
                return False
        self.report.found["schedules"] += 1
        words = ("workflow_name", "cron_expression", "timezone")
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        arguments = dict(zip(words, call.args, strict=False)) | named
        values = [literal(arguments[word]) if word in arguments else None for word in words]
        if not (isinstance(values[0], str) and isinstance(values[1], str)) or len(arguments) > len(words):
            self._gap(
                call, f"`{_short(ast.unparse(call))}` is computed", "Write `Schedule(...)` for each of them."
            )
            return True
        self._schedule(values[0], values[0], values[1], values[2])
        self.report.mapped["schedules"] += 1
        return True

    def _schedule(self, name: str, workflow: str, cron: str, timezone: object) -> None:
        self.project.ours.add("Schedule")
        self._fires.append((name, workflow, cron, timezone if isinstance(timezone, str) else None))

    def _write_schedules(self) -> None:
        numbers: dict[str, int] = {}
        for name, workflow, cron, timezone in self._fires:
            word = pack_name(name)
            numbers[word] = numbers.get(word, 0) + 1
            ref = f"{self.project.name}.{word}" + (f"_{numbers[word]}" if numbers[word] > 1 else "")
            action = f"{self.project.name}.{self._refs.get(workflow, pack_name(workflow))}"
            zone = f", timezone={timezone!r}" if timezone else ""
            self.project.schedules.append(f"Schedule({ref!r}, action={action!r}, cron={cron!r}{zone})")
            if workflow not in self._refs:
                self._gap_at(
                    1, f"the schedule {name} starts {workflow}, which is not in this file", "Import it, too."
                )

    def _write_workflows(self) -> None:
        if not self._workflows and self._tasks:  # in a packaged file, all tasks form one workflow
            self.report.found["workflows"] += 1
            # The file does not contain the name of the package's workflow, but one of its triggers may.
            named = {workflow for _, workflow, _, _ in self._fires}
            workflow_name = self._name_in_package or (named.pop() if len(named) == 1 else None)
            name = workflow_name or self.project.name
            if workflow_name is None:
                self._gap_at(
                    1,
                    f"the name of the workflow, which in Penstock is {name}, like the file",
                    "A package names its workflow in package.toml: give the workflow that name, since callers use it.",
                )
            self._workflows[name] = CloacaWorkflow(name, 1)
        lacking = self._lacking()
        by_word = {task.id: task for task in self._tasks.values()}
        by_word |= {task.theirs: task for task in self._tasks.values()}
        by_word |= {task.function: task for task in self._tasks.values()}
        for flow in self._workflows.values():
            words = flow.tasks or [task.function for task in self._tasks.values()]
            unknown = [word for word in words if word not in by_word]
            for word in unknown:
                self._gap_at(
                    flow.line, f"workflow {flow.name} has a task {word!r}", "Its task is not in this file."
                )
            if flow.broken:
                continue
            functions = list(dict.fromkeys(by_word[word].function for word in words if word in by_word))
            if not functions:
                self._gap_at(
                    flow.line,
                    f"workflow {flow.name} has no tasks in these files",
                    "Import the file of its tasks.",
                )
                continue
            self.project.ours.add("workflow")
            described = f", description={flow.description!r}" if flow.description else ""
            name = pack_name(flow.name)
            if name in self._tasks or name in {task.function for task in self._tasks.values()}:
                name = f"{name}_workflow"
                self._gap_at(
                    flow.line,
                    f"the workflow {flow.name} has the name of a task",
                    f"In Penstock it is {self.project.name}.{name}: start it by that name.",
                )
            self._refs[flow.name] = variable = name
            self.project.workflows.append(
                f"{variable} = workflow({name!r}, tasks=[{', '.join(functions)}]{described})"
            )
            if not unknown and not lacking & set(functions):
                self.report.mapped["workflows"] += 1

    def _note_jitter(self) -> None:
        if any(task.retries for task in self._tasks.values()):
            self._gap_at(
                1,
                "jitter of retries",
                "In Cloacina it makes a delay up to a quarter shorter or longer, in Penstock only shorter: usually nothing is "
                "to be done.",
            )

    # -- source text, gaps ---------------------------------------------------------------------------------------

    def _leads_to_cloaca(self, statement: ast.AST) -> bool:
        return any(
            self._names.of(node) is not None or (isinstance(node, ast.Name) and node.id in self._runners)
            for node in ast.walk(statement)
            if isinstance(node, ast.Attribute | ast.Name)
        )

    def _edited(self, function: ast.stmt, edits: Sequence[tuple[int, int, int, str]]) -> str:
        """Return the lines of a function from its `def` on, with these parts of lines replaced. Columns count bytes."""
        last = function.end_lineno or function.lineno
        lines = {number: self._lines[number - 1].encode() for number in range(function.lineno, last + 1)}
        for line, begin, end, text in sorted(edits, reverse=True):
            lines[line] = lines[line][:begin] + text.encode() + lines[line][end:]
        return textwrap.dedent("\n".join(line.decode() for line in lines.values()))

    def _source(self, statement: ast.stmt) -> str:
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", ()))])
        return textwrap.dedent(self._of_lines(first, statement.end_lineno or statement.lineno))

    def _of_lines(self, first: int, last: int) -> str:
        return "\n".join(self._lines[first - 1 : last])

    def _gap(self, node: ast.AST, subject: str, by_hand: str) -> None:
        self._gap_at(getattr(node, "lineno", 1), subject, by_hand)

    def _gap_at(self, line: int, subject: str, by_hand: str) -> None:
        self.report.gap(self._file, line, subject, by_hand)


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _is_build(statement: ast.Return | ast.Assign) -> bool:
    match statement.value:
        case ast.Call(func=ast.Attribute(attr="build")) | ast.Name():
            return True
    return False


def _short(text: str) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= 80 else f"{line[:80]}..."


def _name_in_package(file: Path) -> str | None:
    """Return the name of the workflow that the package around a file gives in a manifest at most four folders above."""
    for folder in list(file.resolve().parents)[:4]:
        with suppress(OSError, ValueError):
            manifest = tomllib.loads((folder / "package.toml").read_text())
            metadata = manifest.get("metadata")
            name = metadata.get("workflow_name") if isinstance(metadata, dict) else None
            return name if isinstance(name, str) and name else None
    return None
