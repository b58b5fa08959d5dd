"""The conversion of a StackStorm pack. Each file is a tree that the importer consumes. A part that was not consumed
becomes a gap."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput, NotFound
from penstock_import import apscheduler_times, stackstorm_rules
from penstock_import.action_chain import ActionChain, keeps_type
from penstock_import.computed_defaults import ComputedDefaults, without_default
from penstock_import.consumed import Node, read_tree
from penstock_import.known_keys import IDENTITY, by_hand
from penstock_import.literal_casts import may_become_another_type, only_type
from penstock_import.loose_expressions import LOOSE, loose_parts
from penstock_import.mistral import MISTRAL, orquesta_tree
from penstock_import.nested_fields import has_secrets, let_be_null
from penstock_import.orquesta import KnownAction, Orquesta
from penstock_import.orquesta_form import tell_refused
from penstock_import.orquesta_names import OF_CHAIN, OF_CONFIGURATION, OF_WORKFLOW, PLAIN, Surroundings
from penstock_import.parameters import Tell, is_immutable, parameter
from penstock_import.project import Project, bounded, stub
from penstock_import.report import Gap, Report
from penstock_import.runner_timeouts import OF_OTHERS, is_limit
from penstock_import.shell_actions import (
    FUNCTIONS,
    RUNNER_PARAMETERS,
    command_function,
    filled,
    script_function,
    with_numbers,
)
from penstock_import.stackstorm_packs import PACK_REF, refusals
from penstock_import.stackstorm_policies import limit_of, retry_of
from penstock_import.stackstorm_runners import (
    BUILT_IN,
    CORE_PARAMETERS,
    CORE_RUNNERS,
    LINUX_RUNNERS,
    NOOP_RESULT,
    OF_CORE,
    OWN_TIMEOUTS,
    RUNNER_TIMEOUTS,
    RUNNER_TYPES,
    SHELLS,
    UNBOUNDED,
    runner_of,
    runner_parameters,
)
from penstock_import.wanted_text import NotMapped

_CONVERTED = "mistral"
"""The runner of a Mistral workflow that has an equal in Orquesta."""
_WORKFLOWS = frozenset({"orquesta", "action-chain", _CONVERTED})
_NO_RESULT = frozenset({"action-chain", _CONVERTED})
"""The runners with results that have parts which nothing here returns."""
_NEVER_FAILS = frozenset({"core_noop", "noop", "fail"})
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "actions": ("name", "runner_type"),
    "rules": ("name",),
    "triggers": ("name",),
}
"""The keys without which StackStorm registers no definition, by the folder of its file."""
_READ = frozenset({"actions", "rules", "triggers", "sensors", "policies", "aliases", "pack.yaml"})
_DEFINITIONS = (".json", ".yaml", ".yml")
"""The extensions of files that may be definitions. StackStorm reads some, and a line names each other one."""
_SET_FOR_COMMANDS = re.compile(r"\bST2_ACTION_[A-Z_]+")
_OF_STORE = re.compile(r"\{\{\s*((?:st2kv\.system|config_context)(?:\.\w+)+)\s*(?:\|\s*decrypt_kv\s*)?\}\}")
_STANDARD_TYPES: tuple[dict[str, Any], ...] = (
    {"ref": "standard"},
    {"ref": "standard", "parameters": {}},
    {"ref": "standard", "parameters": None},
)
"""The types of a rule that fires at each match."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_OF_TRIGGER = frozenset({"type", "parameters", "description", "ref", "pack"})
"""The keys of the trigger of a rule that are mapped, or that follow from its type."""
_OF_RULE_ALONE = frozenset({"tags"})
"""The keys of a rule that affect neither when it fires nor what it starts."""
_WITH_TAGS = frozenset({"action", "rule", "trigger"})
"""The definitions with tags, which StackStorm uses in searches only."""
_LOST_IF_MISSED = {"policy": "skip", "grace": 1}
"""The policy of StackStorm's timers for missed fires. Its scheduler drops a fire that is more than a second late."""
_NOTHING_TO_RUN = re.compile(
    r"(?i)\..*|README.*|CHANGE.*|CHANGELOG.*|LICENSE.*|CONTRIBUTORS.*|AUTHORS.*|icon\.png|images|docs?|tests?"
)


_REFUSED_OF_RUNNER = (
    "StackStorm accepts it and passes it to the runner. Penstock refuses a call with it: leave it out."
)
_OF_ENVIRONMENT = (
    "StackStorm runs the action with these variables of the environment. Penstock refuses a call with it: let the function set "
    "the variables, from a parameter with another name or from secrets."
)
_OF_RUNNER = (
    "StackStorm passes it to the runner, and not to `run`. In Penstock the function gets this parameter: write the "
    "runner's work into the function."
)


class StackStormPack:
    """A converter of one pack to a project."""

    def __init__(self, folder: Path, timezone: str = "UTC") -> None:
        """Create the converter. `timezone` is the zone of the machine, in which StackStorm reads timers without a
        zone."""
        head = folder / "pack.yaml"
        if not head.is_file():
            raise NotFound(f"{folder} has no pack.yaml", hint="Name the folder of one pack of StackStorm.")
        self._folder, self._timezone = folder, timezone
        self.report = Report()
        self._head = read_tree(head)
        self._theirs = self._head.text("ref") or self._head.text("name") or folder.name
        self.project = Project(_name(self._theirs))
        self._sources: dict[str, tuple[str, Node, str]] = {}
        """By the name of an action there: its file, its tree and the kind of its runner."""
        self._names: dict[str, str] = {}
        """By the name of an action there: its name here, which no other action of the pack has."""
        self._foreign: dict[str, str] = {}
        """By the ref of an action of another pack there: the name here of the action that stands in for it."""
        self._schemas: dict[str, dict[str, Any]] = {}
        """By the ref of an action here: its parameters."""
        self._given: list[tuple[str, Any]] = []
        """The parameters that workflows and rules give to actions."""
        self._with_gaps: set[str] = set()
        """The files of actions with gaps of their parameters."""
        self._kept: dict[str, str] = {}
        """By the name of an action that returns its failure: the name of the action that it runs."""
        self._fixed: dict[str, dict[str, str]] = {}
        """By the ref of a workflow here: its immutable parameters, with the key of the store that is their default."""
        self._immutable: dict[str, set[str]] = {}
        """By the ref of an action here: its immutable parameters, which its function fills in."""
        self._stored: dict[str, dict[str, str]] = {}
        """By the ref of a workflow here: its other parameters with a key of the store as their default."""
        self._mistral: dict[str, Node | NotMapped] = {}
        """By the name of a Mistral workflow there: its tree as one of Orquesta, or the reason why it has none."""
        self._computed: dict[str, dict[str, str]] = {}
        """By the ref of a workflow here: its parameters with a computed default, with the template of the variable."""
        self._loose: set[str] = set()
        """The kinds of expressions that a line names already."""
        self._polled: set[Path] = set()
        """The files with the code of sensors, which lines of their own name."""
        self._keys: set[str] = set()
        """The keys of StackStorm's store that are secrets here."""

    def mapped(self) -> Project:
        """Return the project. `report` then has the gaps."""
        self._pack_file()
        for file, node in self._files("triggers"):
            with self._entity("triggers", file, node, "trigger", self._own_name(node)):
                self._trigger(file, node)
        for file, node in self._files("sensors"):
            self._sensor(file, node)
        actions = list(self._last_actions())
        self._names = _different_names([str(_peek(node, "name")) for _, node in actions])
        for file, node in actions:
            self._know_action(file, node)
        for file, node in actions:
            self._action(file, node)
        for file, node in self._files("rules"):
            kind = "schedules" if self._is_timer(node) else "rules"
            with self._entity(kind, file, node, "rule", self._own_name(node)):
                self._rule(file, node)
        policies = list(self._files("policies"))
        last_files = {str(_peek(node, "name")): file for file, node in policies}
        for file, node in policies:
            with self._entity("policies", file, node, "policy", self._own_name(node)):
                self._policy(file, node, last_files[str(_peek(node, "name"))])
        for file, node in self._files("aliases"):
            self.report.found["aliases"] += 1
            node.drop()
            named = str(_peek(node, "name"))
            self.report.gap(
                file,
                1,
                f"a chat command: {named}",
                "Penstock has no ChatOps: let the bot call `penstock run`, or a webhook.",
            )
        self._tell_other_files()
        self._add_kept()
        for ref, supplied in self._given:
            self._take_runner_parameters(ref, supplied)
        return self.project

    # -- the files of a pack --------------------------------------------------------------------------------------

    def _files(self, kind: str) -> Iterator[tuple[str, Node]]:
        for file in sorted([*self._folder.glob(f"{kind}/*.yaml"), *self._folder.glob(f"{kind}/*.yml")]):
            name = str(file.relative_to(self._folder))
            try:
                node = read_tree(file)
            except InvalidInput as error:
                self._unread(kind, name, str(error).removeprefix(f"{file}: "))
                continue
            pack = _peek(node, "pack")
            if pack and pack != self._theirs:
                self.report.found[self._counted_kind(kind, node)] += 1
                self.report.gap(
                    name,
                    node.line_of("pack"),
                    f"the pack {pack} of {_peek(node, 'name') or name}, which lies in the pack {self._theirs}",
                    "StackStorm does not register such a definition: if it is needed, correct `pack` and import again.",
                )
            elif node.is_mapping and node.children:
                missing = [key for key in _REQUIRED.get(kind, ()) if not _peek(node, key)]
                if missing:
                    self._unread(
                        kind,
                        name,
                        f"it has no {' and no '.join(missing)}, so StackStorm does not register it",
                    )
                else:
                    yield name, node
            elif node.peek():
                self._unread(kind, name, "it is not a mapping")

    def _counted_kind(self, kind: str, node: Node) -> str:
        """Return the kind under which a file of a folder is counted."""
        if kind == "actions" and runner_of(_peek(node, "runner_type")) in {*_WORKFLOWS, MISTRAL}:
            return "workflows"
        return "schedules" if kind == "rules" and self._is_timer(node) else kind

    def _unread(self, kind: str, file: str, reason: str) -> None:
        """Record a gap for a file that StackStorm could not read either."""
        self.report.found[kind] += 1
        self.report.gap(file, 1, f"{file} cannot be read: {reason}", "Correct the file, and import again.")

    @contextmanager
    def _entity(self, kind: str, file: str, node: Node, subject: str, name: str) -> Iterator[None]:
        """Count a part of a kind. The part counts as mapped if the block records no gap."""
        self.report.found[kind] += 1
        self.report.place(kind, name, file, node.line)
        self._tell_changed_name(kind, file, node, name)
        previous = self.report.recorded
        for key in IDENTITY:
            if (child := node.get(key)) is not None:
                child.drop()
        yield
        remaining = {path.partition(".")[0] for path, part in node.left() if part.peek() not in _EMPTY}
        self._leftovers(file, node, subject, name)
        if (
            kind in ("rules", "schedules")
            and remaining - _OF_RULE_ALONE
            and name in getattr(self.project, kind)
        ):
            getattr(self.project, kind)[name]["enabled"] = False
        if self.report.recorded == previous:
            self.report.map(kind, name)

    def _tell_changed_name(self, kind: str, file: str, node: Node, ours: str) -> None:
        theirs = str(_peek(node, "name") or "")
        if theirs and theirs != ours and kind != "policies":  # in Penstock, a policy has no name of its own
            self._tell_apart(
                "changed names",
                file,
                node.line_of("name"),
                f"{theirs} is named {ours} in Penstock",
                "Use the new name in outside callers: programs, bots, dashboards.",
            )

    def _tell_apart(self, kind: str, file: str, line: int, subject: str, advice: str) -> None:
        """Record a gap that is counted separately."""
        self.report.found[kind] += self.report.gap(file, line, subject, advice, counts=False)

    def _leftovers(self, file: str, node: Node, subject: str, name: str) -> None:
        for path, leftover in list(node.left()):
            if leftover.peek() in _EMPTY:
                continue
            if path.partition("[")[0] == "tags" and subject in _WITH_TAGS:
                leftover.drop()
                self._tell_apart(
                    "tags", file, leftover.line, f"{path} of {subject} {name}", by_hand(subject, "tags")
                )
                continue
            self.report.gap(file, leftover.line, f"{path} of {subject} {name}", by_hand(subject, path))
            leftover.drop()  # a definition around this one does not name it again
        for key, line in node.repetitions():
            self.report.gap(
                file,
                line,
                f"{key} stands twice: StackStorm reads the last one",
                "Remove the first occurrence.",
            )

    def _action_name(self, theirs: str) -> str:
        """Return the name here of an action of the pack."""
        return self._names.get(theirs, _name(theirs))

    def _is_taken(self, name: str) -> bool:
        """Return whether an action here has this name."""
        return name in self._names.values() or name in self._foreign.values()

    def _own_name(self, node: Node) -> str:
        return _name(str(_peek(node, "name") or ""))

    def _tell(self, file: str) -> Tell:
        return partial(self.report.gap, file)

    def _pack_file(self) -> None:
        if self.project.name != self._theirs:
            self._tell_apart(
                "changed names",
                "pack.yaml",
                self._head.line_of("ref" if self._head.has("ref") else "name"),
                f"the pack {self._theirs} is named {self.project.name} in Penstock",
                "Use the new name in outside callers: programs, bots, dashboards.",
            )
        folder = self._folder.resolve().name
        for line, subject, advice in refusals(self._head, folder):
            self._tell_apart("packs that StackStorm refuses", "pack.yaml", line, subject, advice)
        if not self._head.text("ref") and self._theirs != folder and PACK_REF.fullmatch(folder):
            is_name = PACK_REF.fullmatch(self._theirs) is not None
            of_install = "names by `name`" if is_name else f"refuses, since its `name` is {self._theirs}"
            self._tell_apart(
                "packs without a ref",
                "pack.yaml",
                self._head.line_of("name"),
                f"the pack has no `ref`, and lies in the folder {folder}",
                f"Among its packs, StackStorm names such a pack by its folder, which `st2 pack install` {of_install}. If it "
                f"is {folder} there, write `ref: {folder}`, and import again. Here it is {self._theirs}.",
            )
        for key in ("name", "ref"):
            if (child := self._head.get(key)) is not None:
                child.drop()
        if (dependencies := self._head.get("dependencies")) is not None and dependencies.value():
            self.report.gap(
                "pack.yaml",
                dependencies.line,
                f"the pack needs {dependencies.peek()}",
                "Import those packs too.",
            )
        about = {
            key: child.value()
            for key, child in self._head.items()
            if key not in ("name", "ref", "dependencies")
        }
        self.project.about = {key: value for key, value in about.items() if value not in (None, "", [], {})}

    def _tell_other_files(self) -> None:
        entries = {
            self._folder / "actions" / str(_peek(node, "entry_point"))
            for _, node, _ in self._sources.values()
        }
        beside = self._beside("actions", entries, (".yaml", ".yml"), ())
        for kind in sorted(_READ - {"actions", "pack.yaml"}):
            beside += self._beside(kind, self._polled, _DEFINITIONS, _DEFINITIONS)
        for path in (*sorted(self._folder.iterdir()), *beside):
            if path.parent == self._folder and (path.name in _READ or _NOTHING_TO_RUN.fullmatch(path.name)):
                continue
            name = str(path.relative_to(self._folder))
            advice = {
                "config.schema.yaml": "Give these values as secrets or settings of the functions that read them.",
                "requirements.txt": "Install these where the workers run.",
            }.get(name, "If a function needs it, move it.")
            self.report.gap(name, 1, f"{name} is not read", advice)
        for kind in sorted(_READ - {"actions", "pack.yaml"}):
            for file in sorted((self._folder / kind).rglob("*")):
                extensions = (".json",) if file.parent.parent == self._folder else _DEFINITIONS
                if file.is_file() and file.suffix in extensions:
                    name = str(file.relative_to(self._folder))
                    by_hand = (
                        f"StackStorm registers none from here. If it is in use, move it into {kind}/ as YAML."
                    )
                    self.report.gap(name, 1, f"{name} is not read", by_hand)

    def _beside(
        self, kind: str, entries: set[Path], of_folder: tuple[str, ...], below: tuple[str, ...]
    ) -> list[Path]:
        """Return the files and folders beside the definitions of a kind that no definition names. Other lines name the
        files with the extensions `of_folder`, and below a folder those with the extensions `below`."""
        paths: list[Path] = []
        for path in sorted((self._folder / kind).glob("*")):
            if path.suffix in of_folder or path.name in ("__init__.py", "__pycache__"):
                continue
            if kind != "actions" and _NOTHING_TO_RUN.fullmatch(path.name):
                continue
            files = [file for file in (path, *sorted(path.rglob("*"))) if file.is_file()]
            unnamed = [file for file in files if file not in entries and file.suffix not in below]
            if unnamed:
                paths += unnamed if entries & set(files) else [path]
        return paths

    # -- triggers and sensors -------------------------------------------------------------------------------------

    def _trigger(self, file: str, node: Node) -> None:
        name = _name(node.text("name"))
        trigger: dict[str, Any] = {}
        if description := node.text("description"):
            trigger["description"] = description
        if (notes := node.get("payload_info")) is not None:
            notes.drop()
            self._ignored(file, node.line_of("payload_info"), f"payload_info of trigger {name}")
        schema = node.get("payload_schema")
        if schema is not None:
            value = schema.peek()
            if isinstance(value, dict) and "type" in value:
                mapped = parameter("payload", schema, self._tell(file), is_payload=True) or {}
                trigger["schema"] = mapped | {"type": value["type"]}
        if (earlier := self.project.triggers.get(name)) is not None:
            poll = {"poll": earlier["poll"]} if "poll" in earlier else {}
            if earlier != trigger | poll:  # sensors may share a trigger, which StackStorm then registers once
                self.report.gap(file, node.line, f"two triggers become {name}", "Rename one of them.")
            trigger |= poll
        self.project.triggers[name] = trigger

    def _sensor(self, file: str, node: Node) -> None:
        """Convert a sensor to a poll trigger for each of its trigger types. Its code is moved by hand."""
        named = node.text("class_name") or Path(file).stem
        self.report.found["sensors"] += 1
        entry, interval = node.text("entry_point"), node.get("poll_interval")
        self._polled.add(self._folder / "sensors" / entry)
        every = interval.value() if interval is not None else None
        for key in ("name", "description", *IDENTITY):
            if (child := node.get(key)) is not None and child.peek() is not False:
                child.drop()
        if not self._is_enabled(file, node, f"the sensor {named}"):
            every = None
            if _peek(node, "enabled") is False:
                self.report.gap(file, node.line_of("enabled"), f"the sensor {named} is disabled: StackStorm does not start it",
                                "Write `poll` of its triggers once it should run.")  # fmt: skip
        for child in (node.get("trigger_types") or Node(1)).parts():
            with self._entity("triggers", file, child, "trigger", self._own_name(child)):
                self._trigger(file, child)
                name = self._own_name(child)
                is_polled = isinstance(every, int | float) and not isinstance(every, bool) and every > 0
                if is_polled and "poll" in self.project.triggers[name]:
                    self.report.gap(file, child.line, f"a second sensor polls for {name}: {named}",
                                    "Let one function return the events of both.")  # fmt: skip
                elif is_polled:
                    function = self.project.function(
                        f"poll_{name}", _poll_stub(f"poll_{name}", f"{named} of {entry}")
                    )
                    self.project.triggers[name]["poll"] = {"every": every, **function}
                    self._tell_apart(
                        "calls of polls",
                        file,
                        node.line_of("poll_interval"),
                        f"the calls of poll_{name}",
                        "StackStorm bounds no call of a sensor, and waits `poll_interval` after it ends. In Penstock a call "
                        "ends after 300 s, and `every` counts from its begin: write `timeout` of `poll` for longer calls.",
                    )
        self._leftovers(file, node, "sensor", named)
        advice = (
            f"Write the function poll_..._ of {self.project.module}.py: return the payloads of new events."
            if every
            else "Have its source publish events, or write a poll trigger (docs/poll-triggers.md)."
        )
        self.report.gap(file, 1, f"the code of the sensor {named}", advice)

    # -- actions --------------------------------------------------------------------------------------------------

    def _last_actions(self) -> Iterator[tuple[str, Node]]:
        """Yield the files of actions. StackStorm reads only the last file with the same name of an action. The others are
        recorded as gaps."""
        actions = list(self._files("actions"))
        last_files = {str(_peek(node, "name")): file for file, node in actions}
        for file, node in actions:
            name = str(_peek(node, "name"))
            if last_files[name] == file:
                yield file, node
                continue
            self.report.found[self._counted_kind("actions", node)] += 1
            self.report.gap(
                file,
                node.line_of("name"),
                f"the action {name}, which {last_files[name]} replaces",
                "StackStorm keeps one action of a name, that of the last file. If both are meant, rename one and import again.",
            )

    def _know_action(self, file: str, node: Node) -> None:
        theirs = str(_peek(node, "name") or "")
        runner = self._runner_and_tree(theirs, node)
        previous = self.report.recorded
        self._sources[theirs] = (file, node, runner)
        tell = self._tell(file)
        schema: dict[str, Any] = {}
        ref = f"{self.project.name}.{self._action_name(theirs)}"
        parameters = node.get("parameters") or Node(1)
        if runner in _WORKFLOWS:
            self._computed[ref] = ComputedDefaults(dict(parameters.peek() or {})).mapped()
        for name, child in parameters.items():
            if name in self._computed.get(ref, ()):
                if (about := without_default(child.value())) is not None:
                    schema[name] = about
            elif runner in _WORKFLOWS and (key := _fixed_key(child)) is not None:
                child.drop()
                self._fixed.setdefault(ref, {})[name] = key
            elif runner in _WORKFLOWS and (key := _stored_default(child)) is not None:
                self._stored.setdefault(ref, {})[name] = key
                schema[name] = parameter(name, child, tell, is_of_workflow=True) or {}
            elif child.is_mapping or child.peek() is None:
                if not child.is_mapping or not child.items():
                    child.drop()
                about = parameter(
                    name, child, tell, runner_parameters(runner), is_of_workflow=runner in _WORKFLOWS
                )
                if about is not None:
                    schema[name] = about
                    if runner in _WORKFLOWS and None in (about.get("enum") or ()):
                        self._tell_null_choice(file, name, child)
                    if is_immutable(child) and "const" in about:
                        self._settle_immutable(file, ref, name, child, runner in _WORKFLOWS)
            else:
                tell(child.line, f"the parameter {name} is not a mapping", "Write its type.")
                child.drop()
        self._schemas[ref] = schema
        if self.report.recorded > previous:
            self._with_gaps.add(file)

    def _runner_and_tree(self, theirs: str, node: Node) -> str:
        """Return the runner of an action. Convert the workflow of a Mistral action, once."""
        runner = runner_of(_peek(node, "runner_type"))
        if runner != MISTRAL:
            return runner
        if theirs not in self._mistral:
            try:
                path = self._folder / f"actions/{_peek(node, 'entry_point')}"
                root = read_tree(path) if path.is_file() else Node(1)
                parameters = {
                    name: about.peek() for name, about in (node.get("parameters") or Node(1)).items()
                }
                self._mistral[theirs] = orquesta_tree(root, f"{self._theirs}.{theirs}", parameters)
                self._tell_unused_workflows(f"actions/{_peek(node, 'entry_point')}", root, parameters)
            except (InvalidInput, NotMapped) as reason:
                self._mistral[theirs] = NotMapped(str(reason))
        return runner if isinstance(self._mistral[theirs], NotMapped) else _CONVERTED

    def _tell_unused_workflows(self, file: str, root: Node, parameters: Mapping[str, Any]) -> None:
        """Name the workflows of a workbook that the runner does not start. A task that starts one refuses the workbook."""
        workflows = (root.get("workflows") or Node(1)).items()
        about = parameters.get("workflow")
        first = str((about or {}).get("default")).rpartition(".")[2] if len(workflows) > 1 else None
        for name, child in workflows:
            if first is not None and name != first:
                self._ignored(
                    file, child.line, f"the workflow {name} of a workbook, whose action starts {first}"
                )

    def _settle_immutable(self, file: str, ref: str, name: str, source: Node, is_of_workflow: bool) -> None:
        """Leave an immutable parameter out of an action. The function fills it in. Record a gap for one of a workflow."""
        if not is_of_workflow:
            self._immutable.setdefault(ref, set()).add(name)
            return
        self._tell_apart(
            "immutable parameters of workflows",
            file,
            source.line_of("immutable"),
            f"the parameter {name}, which is immutable",
            "StackStorm refuses a call that names it. Penstock accepts a call that passes its exact value: leave it out of "
            "the call.",
        )

    def _tell_null_choice(self, file: str, name: str, source: Node) -> None:
        """Record a gap for an optional choice of a workflow without a default, for which a caller may give null here."""
        about = source.peek() or {}
        if about.get("default") is None and None not in about.get("enum", ()):
            self._tell_apart(
                "choices that may be null",
                file,
                source.line_of("enum"),
                f"the parameter {name}, an optional choice",
                "StackStorm refuses a call with null. In Penstock null is like no value: leave it out of the call, or write "
                "`when` of the tasks that read it.",
            )

    def _action(self, file: str, node: Node) -> None:
        runner = self._runner_and_tree(str(_peek(node, "name") or ""), node)
        kind = "workflows" if runner in _WORKFLOWS else "actions"
        name = self._action_name(str(_peek(node, "name") or ""))
        with self._entity(kind, file, node, "action", name):
            for key in ("name", "runner_type", "entry_point", "description"):
                if (child := node.get(key)) is not None:
                    child.drop()
            output = node.get("output_schema")
            if output is not None and output.peek() and not has_secrets(output.peek()):
                output.drop()
                self._tell_apart(
                    "output schemas",
                    file,
                    output.line,
                    f"output_schema of action {name}",
                    "StackStorm checks it only with `validate_output_schema`, which is off by default: if yours is on, write "
                    "it as `result` of "
                    "the action.",
                )
            if (notify := node.get("notify")) is not None and notify.peek() not in _EMPTY:
                notify.drop()
                self._tell_apart(
                    "notifications",
                    file,
                    node.line_of("notify"),
                    f"notify of action {name}",
                    by_hand("action", "notify"),
                )
            if not self._is_enabled(file, node, f"action {name}"):
                self.report.gap(
                    file,
                    node.line_of("enabled"),
                    f"action {name} is disabled",
                    "It fails until its function is written.",
                )
                if kind == "workflows":
                    self._stand_in(file, node, name, f"{name}, which is disabled")
                else:
                    self._plain_action(node, name, self._to_be_written(file, node, name, runner))
            elif kind == "workflows":
                self._workflow(file, node, name, runner)
            else:
                self._plain_action(node, name, self._run(file, node, name, runner))
        if file in self._with_gaps:
            self.report.unmap(kind, name)
        if runner == MISTRAL:  # an action here, to be written by hand, but a workflow there
            self.report.found["actions"] -= 1
            self.report.found["workflows"] += 1

    def _is_enabled(self, file: str, node: Node, subject: str, default: bool = True) -> bool:
        """Return whether a definition is in force. Record a gap for a value that is neither true nor false."""
        enabled = node.get("enabled")
        if enabled is None:
            return default
        value = enabled.value()
        if not isinstance(value, bool):
            self.report.gap(file, enabled.line, f"enabled of {subject}, {value!r}, which is neither true nor false",
                            "StackStorm refuses it, or disables it: write the intended value, and import again.")  # fmt: skip
        return value is True

    def _plain_action(self, node: Node, name: str, body: dict[str, Any]) -> None:
        """Add an action that is not a workflow. A caller cannot give its immutable parameters."""
        immutable = self._immutable.get(f"{self.project.name}.{name}", ())
        parameters = {key: about for key, about in body.pop("parameters").items() if key not in immutable}
        self.project.actions[name] = body | {
            "description": str(_peek(node, "description") or ""),
            "parameters": parameters,
        }

    def _stand_in(self, file: str, node: Node, name: str, was: str) -> None:
        """Add an action in the place of a workflow that is not read. It has the workflow's parameters, and its function is
        to be written. Record a gap for each default that only the workflow would fill in."""
        ref = f"{self.project.name}.{name}"
        schema = {key: dict(about) for key, about in self._schemas[ref].items()}
        parameters = node.get("parameters") or Node(1)
        for key in sorted(
            {*self._fixed.get(ref, ()), *self._stored.get(ref, ()), *self._computed.get(ref, ())}
        ):
            self.report.gap(file, parameters.line_of(key), f"the default of {key} of action {name} is computed",
                            f"Compute the default in the function {name}_ of {self.project.module}.py.")  # fmt: skip
        body = self._function(name, stub(name, was), schema) | UNBOUNDED
        self.project.actions[name] = body | {
            "description": str(_peek(node, "description") or ""),
            "parameters": schema,
        }

    def _schema_and_timeout(
        self, file: str, node: Node, name: str, runner: str
    ) -> tuple[dict[str, Any], float | None]:
        """Return the parameters of an action, without its time limit, and the time limit."""
        schema = {key: dict(about) for key, about in self._schemas[f"{self.project.name}.{name}"].items()}
        timeout: float | None = RUNNER_TIMEOUTS.get(runner)
        if "timeout" in schema and timeout is not None:
            timeout = self._timeout(file, node, name, schema.pop("timeout"), timeout)
        return schema, timeout

    def _run(self, file: str, node: Node, name: str, runner: str) -> dict[str, Any]:
        """Return the keys that say what an action runs, and its parameters."""
        schema, timeout = self._schema_and_timeout(file, node, name, runner)
        entry = str(_peek(node, "entry_point") or "")
        line = node.line_of("runner_type")
        if runner == "noop":
            source = f"def {name}_(**parameters):\n    return {NOOP_RESULT}\n"
            return self.project.function(name, source) | {"parameters": schema} | UNBOUNDED
        if runner in SHELLS:
            for place in (file, f"actions/{entry}"):
                self._tell_environment(place)
            try:
                if file in self._with_gaps:
                    line_of_gap = min(gap.line for gap in self.report.gaps if gap.file == file)
                    raise NotMapped(f"this file has a gap at line {line_of_gap}")
                body = self._shell(node, name, entry, schema)
                return body | {"parameters": schema, "timeout": timeout, "on_worker_loss": "fail"}
            except NotMapped as reason:
                self.report.gap(file, line, f"the command of action {name}: {reason}",
                                f"Write the function {name}_ of {self.project.module}.py.")  # fmt: skip
        else:
            advice = {
                "http-request": "Write the function {0}_ with httpx: it returns status_code, body, parsed and headers.",
                "python-script": "Move the code of `run` of {1} into the function {0}_run of {2}.",
            }.get(
                runner,
                "Write its work into the function {0}_ of {2}; it returns the value of `result()` in StackStorm.",
            )
            refused = self._mistral.get(str(_peek(node, "name") or ""))
            why = f": {refused}" if isinstance(refused, NotMapped) else ""
            why = re.sub(r"\bin line (\d+)", rf"in line \1 of actions/{entry}", why)
            self.report.gap(file, line, f"action {name} of the runner {runner}{why}",
                            advice.format(name, entry, f"{self.project.module}.py"))  # fmt: skip
        return self._unwritten(file, node, name, runner, schema, timeout)

    def _to_be_written(self, file: str, node: Node, name: str, runner: str) -> dict[str, Any]:
        """Return the keys of an action with a function that is to be written, and its parameters."""
        return self._unwritten(file, node, name, runner, *self._schema_and_timeout(file, node, name, runner))

    def _unwritten(
        self, file: str, node: Node, name: str, runner: str, schema: dict[str, Any], timeout: float | None
    ) -> dict[str, Any]:
        entry = str(_peek(node, "entry_point") or "")
        for key in sorted(runner_parameters(runner) & schema.keys()):
            if schema[key].get("required") is None and "default" not in schema[key]:
                schema.pop(key)
                self._tell_runner_parameter(
                    file, node, name, key, _OF_ENVIRONMENT if key == "env" else _REFUSED_OF_RUNNER
                )
            elif runner == "python-script":
                self._tell_runner_parameter(file, node, name, key, _OF_RUNNER)
        source = stub(name, f"{runner} {entry}".strip())
        if runner == "python-script":
            source = _python_stub(name, entry)
            for helper in ("ActionFailed", "python_result"):
                self.project.helpers.setdefault(helper, FUNCTIONS[helper])
        own = {key: about for key, about in schema.items() if key not in runner_parameters("python-script")}
        filled_in = own if runner == "python-script" else schema
        body = self._function(name, source, filled_in) | {"parameters": schema, "on_worker_loss": "fail"}
        # A function in a thread goes on after its time limit, but StackStorm ends the process. So the process executor
        # runs it.
        return body | {"timeout": timeout} | ({"executor": "process"} if timeout is not None else {})

    def _timeout(self, file: str, node: Node, name: str, about: Mapping[str, Any], otherwise: float) -> float:
        """Return the time limit of an action that declares the parameter `timeout` in its file. StackStorm's runner
        takes that parameter. In Penstock, a caller cannot pass it."""
        default = about.get("default")
        is_limit = isinstance(default, int | float) and not isinstance(default, bool) and default > 0
        limit = default if is_limit and default is not None else otherwise
        unless = (
            ", unless a task of the pack computes it"
            if runner_of(_peek(node, "runner_type")) in SHELLS
            else ""
        )
        advice = (
            f"In StackStorm a caller sets this limit. In Penstock it is `timeout: {limit}` of the action, and a call with the "
            f"parameter is refused{unless}: write `timeout` of the task that runs it, or of the action."
        )
        if about.get("required") is True:
            advice += " StackStorm requires it of each caller."
        if "const" in about:
            advice += (
                " In StackStorm it is immutable, and a task with another value is refused: in Penstock the task's value "
                "counts."
            )
        self._tell_runner_parameter(file, node, name, "timeout", advice)
        if default is not None and not is_limit:
            parameters = node.get("parameters") or Node(1)
            self.report.gap(file, parameters.line_of("timeout"), f"the timeout {default!r} of action {name}",
                            f"Write `timeout` of the action. Until then it is {limit}.")  # fmt: skip
        return limit

    def _tell_runner_parameter(
        self, file: str, node: Node, name: str, key: str, advice: str = _REFUSED_OF_RUNNER
    ) -> None:
        parameters = node.get("parameters") or Node(1)
        self._tell_apart(
            "parameters of runners",
            file,
            parameters.line_of(key),
            f"the parameter {key} of action {name}, which is one of its runner",
            advice,
        )

    def _tell_environment(self, file: str) -> None:
        """Record a gap for the first variable in a file that StackStorm sets for commands, and Penstock does not set."""
        path = self._folder / file
        text = path.read_text(errors="replace") if path.is_file() else ""
        if (variable := _SET_FOR_COMMANDS.search(text)) is not None:
            line = text.count("\n", 0, variable.start()) + 1
            self.report.gap(
                file,
                line,
                f"the variable {variable[0]}, which StackStorm sets for commands",
                "Pass its value as a parameter, or in `env`.",
            )

    def _shell(self, node: Node, name: str, entry: str, schema: dict[str, Any]) -> dict[str, Any]:
        declared = node.get("parameters")
        if "sudo_password" in schema and schema["sudo_password"].get("default") is not None:
            raise NotMapped("a password for sudo")
        schema.pop("sudo_password", None)
        if entry and runner_of(_peek(node, "runner_type")) == "local-shell-cmd":
            raise NotMapped(f"the entry_point {entry} of a command, whose runs all fail in StackStorm")
        if entry:
            script = self._folder / "actions" / entry
            if not script.is_file() or not script.resolve().is_relative_to(self._folder.resolve()):
                raise NotMapped(f"actions/{entry} is not in the pack")
            self.project.files[f"programs/{entry}"] = script
            operator = schema.pop("kwarg_op", {}).get("default") or "--"
            source, needed = script_function(name, f"programs/{entry}", node, str(operator))
        else:
            schema.pop("kwarg_op", None)
            about = schema.setdefault("cmd", {"type": "string", "required": True})
            template = about.get("default")
            fixed = "const" in about
            names = {key for key, _ in declared.items()} if declared is not None else set()
            source, needed = command_function(name, template, names - RUNNER_PARAMETERS.keys(), fixed)
            if fixed:
                schema.pop("cmd")
        for function in needed:
            self.project.helpers[function] = FUNCTIONS[function]
        return self._function(name, source, schema)

    def _function(self, name: str, source: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function of an action. The returned function fills in the defaults of its parameters, including
        null."""
        numbers = [key for key, about in schema.items() if only_type(about.get("type")) == "number"]
        if numbers:
            self.project.helpers.setdefault("with_floats", FUNCTIONS["with_floats"])
            source = with_numbers(source, numbers)
        defaults = {key: about.get("default") for key, about in schema.items() if not about.get("required")}
        if defaults:
            self.project.helpers.setdefault("with_defaults", FUNCTIONS["with_defaults"])
            source = filled(source, defaults)
        return self.project.function(name, source)

    # -- workflows ------------------------------------------------------------------------------------------------

    def _workflow(self, file: str, node: Node, name: str, runner: str) -> None:
        entry = f"actions/{_peek(node, 'entry_point')}"
        schema = self._schemas[f"{self.project.name}.{name}"]
        path = self._folder / entry
        if not path.is_file():
            self.report.gap(
                file, node.line_of("entry_point"), f"{entry} is missing", "Find the workflow's file."
            )
            self._stand_in(file, node, name, entry)
            return
        converted = self._mistral.get(str(_peek(node, "name") or ""))
        try:
            root = converted if isinstance(converted, Node) else read_tree(path)
        except InvalidInput as error:
            self.report.gap(entry, 1, f"{entry} cannot be read: {str(error).removeprefix(f'{path}: ')}",
                            "Correct the file, and import again.")  # fmt: skip
            self._stand_in(file, node, name, entry)
            return
        self._tell_environment(entry)
        self._tell_loose(entry, path.read_text())
        tell = self._tell(entry)
        action_of = lambda ref, line: self._known(ref, entry, line)  # noqa: E731
        surroundings = Surroundings(
            self._theirs,
            str(_peek(node, "name")),
            partial(self._key, entry),
            partial(self._route, entry),
            partial(self._ignored, entry),
            partial(self._output, entry, name),
            self._fixed.get(f"{self.project.name}.{name}", {}),
            self._computed.get(f"{self.project.name}.{name}", {}),
            partial(self._tell_type, entry),
            partial(self._limit_of_other, entry),
        )
        if runner != "action-chain":
            stops = runner == "orquesta"
            if stops:
                tell_refused(root, tell)
            orquesta = Orquesta(
                tell,
                action_of,
                self._keep,
                surroundings,
                self._types_of,
                failure_stops_all=stops,
                merges_mappings=stops,
            )
            body = orquesta.workflow(root, schema)
        else:
            body = ActionChain(
                tell, action_of, self._types_of, surroundings, partial(self._tell_type, entry), self._keep
            ).workflow(root, schema)
        if runner in _NO_RESULT:
            subject, parts = ("action chain", "`tasks` and `published`")
            if runner == _CONVERTED:
                subject, parts = ("Mistral workflow", "`tasks` and, without an `output`, all variables")
            self._tell_apart(
                f"results of {subject}s",
                entry,
                1,
                f"the result of the {subject} {name}, which consists of {parts}",
                "Penstock does not return it: write the parts that are read as `output` of the workflow.",
            )
        self._tell_notifications(entry, root, name)
        self._leftovers(entry, root, "chain" if runner == "action-chain" else "workflow", name)
        description = str(_peek(node, "description") or "")
        if description:
            body["description"] = description
        self.project.workflows[name] = body
        for task in body["tasks"].values():
            self._add_stored(entry, task.get("workflow", ""), task, "input")
            self._given.append((task.get("action", ""), task.get("input")))

    def _tell_notifications(self, file: str, root: Node, name: str) -> None:
        """Record a gap for each `notify` in a task of a chain. A notification changes nothing of what runs."""
        chain = root.get("chain")
        for task in chain.parts() if chain is not None else ():
            notify = task.get("notify") if task.is_mapping else None
            if notify is not None and notify.peek() not in _EMPTY:
                notify.drop()
                self._tell_apart(
                    "notifications",
                    file,
                    task.line_of("notify"),
                    f"notify of the task {_peek(task, 'name')} of chain {name}",
                    by_hand("chain", "notify"),
                )

    def _add_stored(self, file: str, ref: str, caller: dict[str, Any], key: str) -> None:
        """Pass to a workflow the defaults from the store for the parameters that its caller leaves out."""
        supplied = caller.get(key, {})
        for name, stored in self._stored.get(ref, {}).items() if isinstance(supplied, dict) else ():
            if name not in supplied:
                plain = stored if stored.startswith(OF_CONFIGURATION) else stored.removeprefix("system.")
                supplied[name] = f"{{{{ secrets.{self._key(file, plain)} }}}}"
                caller[key] = supplied

    def _tell_loose(self, file: str, text: str) -> None:
        """Record a gap, once for each kind, for expressions that may have a value in only one of the two systems."""
        for kind, line in loose_parts(text):
            if kind not in self._loose:
                self._loose.add(kind)
                self._tell_apart(
                    "differences of expressions",
                    file,
                    line,
                    f"expressions with {LOOSE[kind]}",
                    "Check this expression, and others of its kind in the pack, wherever the input may be such a value.",
                )

    def _take_runner_parameters(self, ref: str, supplied: Any) -> None:
        """Add the parameters of the runner that callers pass to the declared parameters of an action."""
        action = self.project.actions.get(ref.rpartition(".")[2])
        if action is None or not isinstance(supplied, dict) or "parameters" not in action:
            return
        source = next(
            (
                entry
                for theirs, entry in self._sources.items()
                if self._action_name(theirs) == ref.rpartition(".")[2]
            ),
            None,
        )
        runner = source[2] if source else "local-shell-cmd"
        names = runner_parameters(source[2]) if source else frozenset()
        for name in sorted((names | ({"timeout"} if runner in SHELLS else set())) & supplied.keys()):
            if runner == "python-script" and name not in action["parameters"]:
                self._tell_apart(
                    "parameters of runners",
                    *self.report.places[("actions", ref.rpartition(".")[2])],
                    f"the parameter {name} of action {ref}, which is one of its runner, and which a task gives",
                    _OF_RUNNER,
                )
            action["parameters"].setdefault(name, {})

    def _keep(self, target: KnownAction) -> KnownAction | None:
        """Return a variant of an action that returns its failure as its result; None for a workflow, or if there is no
        such variant."""
        name = target.ref.rpartition(".")[2]
        kept_name = bounded(f"{name}_kept")
        if target.is_workflow or target.shape != PLAIN or name in _NEVER_FAILS or self._is_taken(kept_name):
            return None
        self._kept[kept_name] = name
        return replace(target, ref=f"{self.project.name}.{kept_name}")

    def _add_kept(self) -> None:
        for name, runs in self._kept.items():
            action = self.project.actions[runs]
            function = str(action["function"]).rpartition(":")[2]
            is_python = self._runner_of(runs) == "python-script"
            for helper in ("ActionFailed", "kept", *(["kept_python"] if is_python else [])):
                self.project.helpers.setdefault(helper, FUNCTIONS[helper])
            call = f"{'kept_python' if is_python else 'kept'}({function}, parameters)"
            source = f"def {name}_(**parameters):\n    return {call}\n"
            self.project.actions[name] = copy.deepcopy(action) | self.project.function(name, source)

    def _runner_of(self, name: str) -> str:
        """Return the runner of the action with this Penstock name; an empty text for an action of another pack."""
        runners = {self._action_name(theirs): runner for theirs, (_, _, runner) in self._sources.items()}
        return runners.get(name, "")

    def _key(self, file: str, key: str) -> str:
        """Return the name of the secret for a key of StackStorm's store, and record a gap for the key once."""
        name = _name(key)
        if key not in self._keys:
            self._keys.add(key)
            self._tell_apart(
                "keys of the store",
                file,
                1,
                f"the value {key.removeprefix(OF_CONFIGURATION)} of the pack's configuration"
                if key.startswith(OF_CONFIGURATION)
                else f"the key {key} of StackStorm's store",
                f"Set the text that actions got in StackStorm: `printf %s VALUE | penstock secrets set {name}`. Results and logs "
                "show it as ***, and each attempt looks it up when it begins. A missing secret fails the attempt.",
            )
        return name

    def _ignored(self, file: str, line: int, subject: str) -> None:
        self._tell_apart(
            "ignored parts",
            file,
            line,
            f"{subject}: StackStorm ignores it",
            "Penstock has no equivalent either: remove it, or correct it.",
        )

    def _limit_of_other(self, file: str, line: int, subject: str, advice: str) -> None:
        self._tell_apart("time limits for other packs", file, line, subject, advice)

    def _output(self, file: str, name: str, line: int) -> None:
        self._tell_apart(
            "outputs of failed workflows",
            file,
            line,
            f"the output of the workflow {name}, which StackStorm also returns after a failure",
            "In Penstock a failed workflow has an error and no output. After a transition to `fail`, the message of the error "
            "ends with the output as JSON, without the parts that read a missing value. If a part fails for another reason, the "
            "error names that instead. After another failure, let the tasks pass the values on.",
        )

    def _route(self, file: str, line: int, route: str) -> None:
        self._tell_apart(
            "routes of inquiries",
            file,
            line,
            f"the route {route} of an inquiry",
            "Rules of StackStorm send such questions on: subscribe to inquiries (docs/subscriptions.md).",
        )

    def _types_of(self, ref: str) -> Mapping[str, Any]:
        """Return the types of an action's parameters, to which StackStorm converts rendered texts. A parameter without
        a type stays a text."""
        name = ref.rpartition(".")[2]
        if name in self._kept:
            ref = f"{self.project.name}.{self._kept[name]}"
        schema = self._schemas.get(ref, {})
        of_runner = runner_parameters(self._runner_of(ref.rpartition(".")[2]))
        types = {name: RUNNER_TYPES.get(name, "string") for name in of_runner - {"timeout"}}
        return types | {name: about.get("type", "string") for name, about in schema.items()}

    def _tell_type(self, file: str, line: int, name: str, value: Any) -> None:
        """Record a gap for an expression, or a text such as `1`, that is passed to a parameter of an unknown type."""
        advice = (
            "StackStorm renders it as text and converts the text to the declared type. In Penstock the value keeps its own "
            "type: if the parameter is a text, write `| string`."
        )
        if not keeps_type(value):
            advice = (
                "StackStorm converts this text to the declared type. In Penstock it stays a text: write the value, or one "
                "expression for it."
            )
        self._tell_apart(
            "parameters without a known type",
            file,
            line,
            f"the parameter {name}, {value}, whose type is not known",
            advice,
        )

    def _known(self, ref: str, file: str, line: int) -> KnownAction:
        """Return the Penstock action for a ref of StackStorm. If no file of the pack has the action, add a function
        that is to be written."""
        # The name of an action may contain dots, and the name of a pack contains none.
        pack, _, theirs = ref.partition(".")
        if pack == self._theirs:
            for name, (_, _, runner) in self._sources.items():
                if name == theirs:
                    shape = (
                        OF_CHAIN if runner in _NO_RESULT else OF_WORKFLOW if runner == "orquesta" else PLAIN
                    )
                    ours = f"{self.project.name}.{self._action_name(name)}"
                    is_workflow = runner in _WORKFLOWS and _may_start(self._sources[name][1])
                    return KnownAction(ours, is_workflow, shape, runner, self._limit_of(ours, runner))
        runner = CORE_RUNNERS.get(theirs, "") if pack == "core" else LINUX_RUNNERS.get(ref, OF_OTHERS)
        name = self._foreign.get(ref, "")
        if not name:
            name = self._foreign[ref] = _free_name(_name(ref), self._is_taken)
            if ref in BUILT_IN:
                source, needed, options = BUILT_IN[ref]
                for function in needed:
                    self.project.helpers[function] = FUNCTIONS[function]
                self.project.actions[name] = self.project.function(name, source) | copy.deepcopy(options)
                self._schemas[f"{self.project.name}.{name}"] = options["parameters"]
            else:
                schema = copy.deepcopy(CORE_PARAMETERS.get(theirs)) if pack == "core" else None
                write = (
                    f"rite the function {name}_ of {self.project.module}.py; it returns the value of `result()` in "
                    "StackStorm."
                )
                if schema is None:
                    self.project.actions[name] = self.project.function(name, stub(name, ref)) | UNBOUNDED
                    write += (
                        " StackStorm converts a text to the type of the parameter, and Penstock passes it as it is. "
                        "StackStorm masks secret parameters: declare the action's `parameters`, each secret with "
                        "`secret: true`."
                    )
                else:
                    for about in schema.values():
                        if not about.get("required"):
                            let_be_null(about)
                    self._schemas[f"{self.project.name}.{name}"] = schema
                    body = self._function(name, stub(name, ref), schema) | UNBOUNDED
                    self.project.actions[name] = body | {"parameters": schema}
                if runner in RUNNER_TIMEOUTS:  # a process, since the runner ends it
                    limit = OWN_TIMEOUTS.get(ref, RUNNER_TIMEOUTS[runner])
                    self.project.actions[name] |= {"timeout": limit, "executor": "process"}
                subject, advice = f"the action {ref} of another pack", f"Import that pack too, or w{write}"
                if not theirs:
                    subject, advice = (
                        f"the action {ref}, a reference without a pack",
                        f"StackStorm finds no action of it: write the pack before it, as in `PACK.{ref}`, and import again.",
                    )
                elif pack == self._theirs:
                    subject, advice = (
                        f"the action {ref}, which no file of the pack defines",
                        f"Correct the name, or w{write}",
                    )
                elif pack == "core":
                    subject, advice = (
                        f"the action {ref} of StackStorm itself",
                        OF_CORE.get(theirs, f"W{write}"),
                    )
                self._tell_apart("actions of other packs", file, line, subject, advice)
        runner = "local-shell-cmd" if ref in BUILT_IN else runner
        ours = f"{self.project.name}.{name}"
        return KnownAction(ours, runner=runner, limit=self._limit_of(ours, runner))

    def _limit_of(self, ref: str, runner: str) -> float | None:
        """Return the seconds after which a runner ends an action if a call gives no time limit, or null."""
        default = self._schemas.get(ref, {}).get("timeout", {}).get("default")
        return default if is_limit(default) else RUNNER_TIMEOUTS.get(runner)

    # -- rules ----------------------------------------------------------------------------------------------------

    def _is_timer(self, node: Node) -> bool:
        trigger = node.get("trigger")
        return trigger is not None and str(_peek(trigger, "type")).endswith("Timer")

    def _rule(self, file: str, node: Node) -> None:
        name = _name(node.text("name"))
        self._tell_environment(file)
        self._tell_loose(file, (self._folder / file).read_text())
        rule: dict[str, Any] = {}
        description = node.text("description")
        kind = node.get("type")
        if kind is not None and kind.peek() in _STANDARD_TYPES:
            kind.drop()
        elif kind is not None and kind.peek() not in _EMPTY and _ref_of(kind) != "backstop":
            self.report.gap(
                file,
                kind.line,
                f"type of rule {name}: {kind.value()}",
                "StackStorm knows the types `standard` and `backstop`, each as a mapping with `ref`: correct it, and import "
                "again.",
            )
            rule["enabled"] = False
        if (context := node.get("context")) is not None and context.value():
            self._tell_apart(
                "contexts of rules",
                file,
                context.line,
                f"context of rule {name}",
                "StackStorm stores it with the rule and never reads it: leave it out.",
            )
        trigger, action = node.get("trigger") or Node(node.line), node.get("action") or Node(node.line)
        is_enabled = self._is_enabled(file, node, f"rule {name}", default=False)
        theirs = trigger.text("type")
        for key in ("ref", "pack"):
            if (own := trigger.get(key)) is not None:
                own.drop()
        descriptions = [
            description,
            *(
                f"{word}: {text}"
                for word, part in (("Trigger", trigger), ("Action", action))
                if (text := part.text("description"))
            ),
        ]
        if any(descriptions):
            rule["description"] = "\n".join(filter(None, descriptions))
        target_action = self._known(action.text("ref"), file, action.line_of("ref"))
        previous = self.report.recorded
        timer = theirs.endswith("Timer")
        root = "" if timer else "trigger.body" if theirs == "core.st2.webhook" else "trigger"
        rule["action"] = target_action.ref
        if timer:
            times = self._times(file, name, theirs, trigger)
            if times is None:
                return
            rule |= times
            if (criteria := node.get("criteria")) is not None and criteria.value():
                self.report.gap(
                    file,
                    criteria.line,
                    f"criteria of rule {name}, which has a timer",
                    "Check the criteria in the action.",
                )
        else:
            rule["trigger"] = self._event(theirs, file, trigger)
            rule |= self._when(file, node, root)
        rule |= self._params(file, action, target_action, root)
        self._add_stored(file, target_action.ref, rule, "params")
        if (parameters := trigger.get("parameters")) is not None and not timer and parameters.peek():
            parameters.drop()
        if parameters is not None and not timer and parameters.peek() and theirs != "core.st2.webhook":
            self.report.gap(
                file,
                parameters.line,
                f"parameters of the trigger of rule {name}",
                "Check them in `when`.",
            )
        for key, child in trigger.items():
            if key not in _OF_TRIGGER and child.peek() not in _EMPTY:
                child.drop()
                self._ignored(file, child.line, f"the key {key} of the trigger of rule {name}")
        if not is_enabled or self.report.recorded > previous:
            rule["enabled"] = False
        section = self.project.schedules if timer else self.project.rules
        if name in section:
            self.report.gap(file, node.line, f"two rules become {name}", "Rename one of them.")
        section[name] = rule
        self._given.append((target_action.ref, rule.get("params")))

    def _times(self, file: str, name: str, kind: str, trigger: Node) -> dict[str, Any] | None:
        parameters = trigger.get("parameters")
        supplied = parameters.value() if parameters is not None else {}
        try:
            times = apscheduler_times.timer(kind, supplied if isinstance(supplied, dict) else {})
        except NotMapped as reason:
            self.report.gap(file, trigger.line, f"a timer, {kind}: {reason}", "Write it as a schedule.")
            return None
        if "every" not in times and "timezone" not in times and self._timezone != "UTC":
            times["timezone"] = self._timezone
        if apscheduler_times.is_over(times):
            self.report.gap(
                file,
                trigger.line,
                f"the timer of rule {name}, whose date {times['at']} is past",
                "StackStorm starts no such timer, and Penstock refuses it: leave it out, or write a schedule with a future "
                "instant.",
            )
            return None
        if "every" in times:
            self._tell_apart(
                "intervals of timers",
                file,
                trigger.line,
                f"the first fire of the timer of rule {name}",
                "StackStorm counts the interval from the start of its timers, and again after each restart. In Penstock it "
                "counts from 1970-01-01T00:00Z: write `starts_at` for another first fire.",
            )
        return times | {"missed": _LOST_IF_MISSED}

    def _event(self, kind: str, file: str, trigger: Node) -> str:
        pack, _, theirs = kind.partition(".")
        name = _name(theirs) if pack == self._theirs else _name(kind)
        advice = f"Have its source publish {self.project.name}.{name}."
        if kind == "core.st2.webhook":
            url = (_peek(trigger, "parameters") or {}).get("url")
            name = _name(f"webhook_{url}")
            advice = f"Make it with `penstock webhooks set` for {self.project.name}.{name}; the body is the payload."
            kind = f"{kind} of {url}"
        if name not in self.project.triggers:
            self._tell_apart(
                "triggers of other packs",
                file,
                trigger.line,
                f"the trigger {kind} is in no file of the pack",
                advice,
            )
            self.project.triggers[name] = {}
        return f"{self.project.name}.{name}"

    def _when(self, file: str, node: Node, root: str) -> dict[str, Any]:
        criteria = node.get("criteria")
        if criteria is None:
            return {}
        mapped: list[tuple[str, Any]] = []
        for path, child in criteria.items():
            spec = child.value()
            try:
                stackstorm_rules.criterion(path, spec, root)
                mapped.append((path, spec))
                if stackstorm_rules.reads_nothing(path):
                    self._tell_apart(
                        "criteria without a value",
                        file,
                        child.line,
                        f"the criterion {path}, which reads nothing of the event",
                        "StackStorm compares null, and so does Penstock: write the path with `trigger.` before it, and "
                        "import again, if the payload is meant.",
                    )
            except NotMapped as reason:
                self.report.gap(file, child.line, f"the criterion {path}, {spec}: {reason}",
                                "Add it to `when`. Until then the rule is disabled.")  # fmt: skip
        criteria.drop()
        return {"when": stackstorm_rules.condition_of(mapped, root)} if mapped else {}

    def _params(self, file: str, action: Node, target_action: KnownAction, root: str) -> dict[str, Any]:
        params: dict[str, Any] = {}
        types = self._types_of(target_action.ref)
        own = f"{self._theirs}."
        pack = self._theirs if str(_peek(action, "ref")).startswith(own) else ""
        for name, child in (action.get("parameters") or Node(1)).items():
            value = child.value()
            try:
                if name == "timeout" and target_action.runner in (*RUNNER_TIMEOUTS, OF_OTHERS):
                    self.report.gap(
                        file,
                        child.line,
                        f"the timeout {value} of the action of a rule",
                        "Write `timeout` of the action.",
                    )
                    if (
                        target_action.runner != OF_OTHERS
                    ):  # a runner that is not known may give it to the action
                        continue
                surroundings = Surroundings(pack, note_key=partial(self._key, file))
                params[name] = stackstorm_rules.parameters(value, types.get(name), root, surroundings)
                if name not in types and (keeps_type(value) or may_become_another_type(value)):
                    self._tell_type(file, child.line, name, value)
            except NotMapped as reason:
                params[name] = "{{ none.to_do }}"
                self.report.gap(
                    file, child.line, f"the parameter {name}, {value}: {reason}", "Write it as a template."
                )
        return {"params": params} if params else {}

    # -- policies -------------------------------------------------------------------------------------------------

    def _policy(self, file: str, node: Node, last_file: str) -> None:
        """Convert a policy for an action of the pack: concurrency to a limit, and retries to a retry policy. `last_file` is
        the last file with a policy of this name."""
        if file != last_file:
            self.report.gap(
                file,
                node.line_of("name"),
                f"the policy {_peek(node, 'name')}, which {last_file} replaces",
                "StackStorm keeps one policy of a name, that of the last file: rename one of them, and import again, if both "
                "are meant.",
            )
            node.drop()
            return
        name, kind, ref = node.text("name"), node.text("policy_type"), node.text("resource_ref")
        if (description := node.get("description")) is not None:
            description.drop()
        if not self._is_enabled(file, node, f"the policy {name}"):
            if (unused := node.get("parameters")) is not None:
                unused.drop()
            return  # a disabled policy has no effect in StackStorm
        parameters = node.get("parameters") or Node(node.line)
        supplied = parameters.value() if parameters.is_mapping else {}
        pack, _, theirs = ref.partition(".")
        ours = self._action_name(theirs)
        target = self.project.actions.get(ours) if pack == self._theirs else None
        is_workflow = target is None and pack == self._theirs and ours in self.project.workflows
        body = self.project.workflows[ours] if is_workflow else target
        limit = limit_of(kind, supplied)
        if body is not None and limit is not None and _acts_otherwise(limit, body.get("limits", ())):
            self.report.gap(
                file,
                node.line,
                f"the policy {name}, which cancels or delays otherwise than another policy of {ours}",
                "StackStorm asks them in turn, and no further one once one delays: write the limit that is meant.",
            )
        elif body is not None and limit is not None:
            body.setdefault("limits", []).append(limit)
            self._tell_optional_attributes(file, node, name, f"{self.project.name}.{ours}", limit)
            self._depends(file, node, name, "workflows" if is_workflow else "actions", ours)
            for twin in sorted(twin for twin, runs in self._kept.items() if runs == ours):
                self.report.gap(file, node.line, f"{ours} and {twin} each have the limit of {name} in Penstock",
                                "StackStorm counts both together: let all tasks run the same action, or divide the "
                                "limit between them.")  # fmt: skip
        elif target is not None and kind == "action.retry" and "retry" in target:
            self.report.gap(
                file,
                node.line,
                f"the policy {name}, which retries {ours} beside another policy",
                "StackStorm asks both: write one `retry` with what is meant.",
            )
        elif target is not None and (retry := retry_of(kind, supplied, self._runner_of(ours))) is not None:
            target["retry"] = retry
            self._depends(file, node, name, "actions", ours)
            self._leave_out_of_workflows(ref)
        else:
            self.report.gap(
                file,
                node.line,
                f"a policy: {name}, {kind} of {ref}",
                "Write it as `limits` or `retry` of the action.",
            )

    def _tell_optional_attributes(
        self, file: str, node: Node, policy: str, ref: str, limit: Mapping[str, Any]
    ) -> None:
        """Record a gap for each attribute of a policy that a caller may leave out."""
        parameters = node.get("parameters") or Node(node.line)
        for attribute in limit.get("by", ()):
            if self._schemas.get(ref, {}).get(attribute, {}).get("required") is not True:
                self._tell_apart(
                    "attributes that may be left out",
                    file,
                    parameters.line_of("attributes"),
                    f"the attribute {attribute} of the policy {policy}, which a start may leave out",
                    "StackStorm counts such a start with all others. Here it counts with those that leave it out, too: have "
                    "each start give it.",
                )

    def _depends(self, file: str, node: Node, policy: str, section: str, target: str) -> None:
        """Note that a policy is lost if its action is lost."""
        gap = Gap(
            file,
            node.line,
            f"the policy {policy} of {target}, which Penstock refuses",
            "Write it as `limits` or `retry`, together with the refused action.",
        )
        self.report.dependents.setdefault((section, target), []).append(("policies", _name(policy), gap))

    def _leave_out_of_workflows(self, theirs: str) -> None:
        """Give the tasks that run an action one attempt: StackStorm's retry policies do not apply inside of workflows."""
        name = self._action_name(theirs.partition(".")[2])
        refs = {f"{self.project.name}.{name}"}
        refs |= {f"{self.project.name}.{kept}" for kept, runs in self._kept.items() if runs == name}
        for workflow in self.project.workflows.values():
            for task in workflow["tasks"].values():
                if task.get("action") in refs:
                    task.setdefault("retry", {"max_attempts": 1})


def _acts_otherwise(limit: Mapping[str, Any], beside: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a full limit cancels a start where another one delays it, or the other way round."""
    return any(other.get("when_full") != limit.get("when_full") for other in beside)


def _fixed_key(parameter: Node) -> str | None:
    """Return the scope and the key of the store from which an immutable text gets its value; None for another
    parameter."""
    about = parameter.peek() if parameter.is_mapping else {}
    return _key_of_text(about) if about.get("immutable") is True else None


def _stored_default(parameter: Node) -> str | None:
    """Return the scope and the key of the store from which a text gets its default, if a caller may replace that; None
    for another parameter."""
    about = parameter.peek() if parameter.is_mapping else {}
    return _key_of_text(about) if about.get("immutable") is not True else None


def _key_of_text(about: Mapping[str, Any]) -> str | None:
    """Return the scope and the key of the store that the default of a text names; None if the schema checks anything
    else."""
    match = _OF_STORE.fullmatch(str(about.get("default")).strip())
    if match is None or about.get("type", "string") != "string":
        return None
    allowed_keys = {"type", "description", "default", "immutable", "required", "secret", "position"}
    return match[1].removeprefix("st2kv.") if about.keys() <= allowed_keys else None


def _python_stub(name: str, entry: str) -> str:
    """Return the source of a function that is to be written, in a wrapper that returns what StackStorm's runner
    returns."""
    message = f"to do: the work of `run` of {entry}"
    return (
        f"def {name}_(**parameters):\n"
        f"    return python_result({name}_run(**parameters))\n\n\n"
        f"def {name}_run(**parameters):\n    raise NonRetryable({message!r})\n"
    )


def _poll_stub(name: str, was: str) -> str:
    message = f"to do: what {was} did"
    return f"def {name}_(state):\n    raise NonRetryable({message!r})\n"


def _peek(node: Node, key: str) -> Any:
    child = node.get(key)
    return None if child is None else child.peek()


def _ref_of(node: Node) -> Any:
    return _peek(node, "ref") if node.is_mapping else None


def _may_start(node: Node) -> bool:
    """Return whether an action may be started: StackStorm starts none that is disabled."""
    return not node.has("enabled") or _peek(node, "enabled") is True


def _different_names(theirs: Iterable[str]) -> dict[str, str]:
    """Return a name of Penstock for each name of StackStorm. Of names that become one, a name that stays as it is has
    precedence, and each other name gets a number."""
    names: dict[str, str] = {}
    for name in sorted(theirs, key=lambda name: _name(name) != name):
        names[name] = _free_name(_name(name), lambda ours: ours in names.values())
    return names


def _free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name, with a number behind it if it is taken."""
    numbered = (bounded(f"{name}_{number}") for number in count(2))
    return name if not is_taken(name) else next(free for free in numbered if not is_taken(free))


def _name(theirs: str) -> str:
    """Return a valid Penstock name for a name of StackStorm."""
    name = re.sub(r"\W+", "_", theirs.strip(), flags=re.ASCII).strip("_").lower()
    return bounded(name if name[:1].isalpha() else f"x_{name}")
