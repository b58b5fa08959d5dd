"""A check that Penstock accepts an imported project. An action or a workflow that lint refuses is replaced by an action
that fails, and becomes a gap."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import yaml

from penstock.language.loading.lint import Fault, check, lint
from penstock_import.project import Project, stub
from penstock_import.report import Report

_ELSEWHERE = re.compile(r" \(and at \d+ more places?: [^)]*\)")
"""The note in a message that names other definitions with the same fault. Each of them gets a message of its own."""
_SECTIONS = ("triggers", "actions", "workflows", "rules", "schedules", "limits")


def keep_applicable(project: Project, report: Report) -> None:
    """Replace or remove the definitions that lint refuses, with a gap for each, and count the accepted ones by kind. If
    the whole project is refused, none counts as accepted."""
    refused: dict[str, set[str]] = {section: set() for section in _SECTIONS}
    whole: list[str] = []
    while True:
        faults, whole = _faults(project, report)
        new_faults = [(section, name, text) for section, name, text in faults if name not in refused[section]]
        if not new_faults:
            whole += [message for _, _, message in faults]
            break
        for section, name, message in new_faults:
            refused[section].add(name)
            _replace(project, section, name)
            file, line = report.places.get((section, name), ("IMPORT", 1))
            report.gap(
                file, line, f"{section[:-1]} {name} is refused by Penstock: {message}", "Write it by hand."
            )
            report.unmap(_kind(section, report), name)
            for kind, dependent, gap in report.dependents.get((section, name), ()):
                report.gap(gap.file, gap.line, gap.what, gap.by_hand)
                report.unmap(kind, dependent)
    for message in whole:
        report.gap(
            "IMPORT",
            1,
            f"Penstock refuses the project: {message}",
            "Correct it first: until then nothing of the project can be applied.",
        )
    for section in _SECTIONS:
        kind = _kind(section, report)
        if kind in report.found:
            own = set() if whole else set(getattr(project, section, ())) - refused[section]
            own = own & report.names.get(kind, set()) if kind == "canvases" else own
            report.applied[kind] = min(len(own), report.found[kind])
    if "policies" in report.found:
        report.applied["policies"] = 0 if whole else report.mapped["policies"]
    report.is_checked = True


def _kind(section: str, report: Report) -> str:
    """Return the kind of the report under which the parts of a section are counted."""
    if section == "limits":
        return "policies"
    kinds = {"actions": "tasks", "workflows": "canvases"}
    return kinds[section] if section in kinds and "tasks" in report.found else section


def _faults(project: Project, report: Report) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the section, the name and the message of each fault in a definition, and the messages of the faults of the
    whole project."""
    with tempfile.TemporaryDirectory(prefix="penstock-import-") as scratch:
        folder = Path(scratch) / project.name
        project.write(folder, "", report)
        definitions, faults = lint(str(folder))
        if not faults:
            faults = check(definitions, ())
        errors = [fault for fault in faults if not fault.is_warning]
        placed = {fault.message: _placed(folder, fault, project) for fault in errors}
        sys.path[:] = [path for path in sys.path if not path.startswith(scratch)]
    with_place = [place for place in dict.fromkeys(placed.values()) if place is not None]
    return with_place, [message for message, place in placed.items() if place is None]


def _placed(folder: Path, fault: Fault, project: Project) -> tuple[str, str, str] | None:
    file = Path(fault.file).name if fault.file else ""
    section = file.removesuffix(".yaml")
    message = _ELSEWHERE.sub(
        "", fault.message.replace(str(folder.parent), "").replace(project.name + "/", "")
    )
    if section in _SECTIONS and fault.line is not None:
        root = yaml.compose((folder / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        entries = root.value if isinstance(root, yaml.MappingNode) else []
        names = [key.value for key, _ in entries if key.start_mark.line < fault.line]
        return (section, names[-1], message) if names else None
    for section in ("limits", "rules", "schedules", "workflows", "actions", "triggers"):
        for name in getattr(project, section, ()):
            if f"{project.name}.{name}" in fault.message or f" {name} " in fault.message:
                return section, name, message
    return None


def _replace(project: Project, section: str, name: str) -> None:
    """Replace an action or a workflow by an action that only fails. Remove the schema of a trigger, and any other
    definition as a whole."""
    if section in ("actions", "workflows"):
        getattr(project, section).pop(name, None)
        if section == "workflows":
            _call_as_action(project, f"{project.name}.{name}")
        project.actions[name] = project.function(name, stub(name, f"{name}, which was refused"))
    elif section == "triggers" and project.triggers.get(name):
        project.triggers[name] = {}
    else:
        getattr(project, section).pop(name, None)


def _call_as_action(project: Project, ref: str) -> None:
    """Let the tasks that run a refused workflow run the action that replaces it, so that lint does not refuse these
    tasks too."""
    for body in project.workflows.values():
        for key, task in body.get("tasks", {}).items():
            if isinstance(task, dict) and task.get("workflow") == ref:
                body["tasks"][key] = {
                    "action" if name == "workflow" else name: part for name, part in task.items()
                }
