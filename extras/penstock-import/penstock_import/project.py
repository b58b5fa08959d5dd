"""The project that an import writes: a pack in YAML, the Python code of its actions, a README, and the report."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from penstock_import.report import Report

_MODULE = '"""The actions of this pack."""\n'
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MAX_NAME = 64
"""The maximum length of each part of a ref."""
_MODULES = ("json", "math", "os", "pathlib", "shlex", "signal", "subprocess", "time", "traceback")
"""The modules of Python that the functions of a pack may import."""
GITIGNORE = ".penstock/\n.venv/\n__pycache__/\n.pytest_cache/\n"


@dataclass(slots=True)
class Project:
    """The sections of a pack, in the form of `pack.yaml`."""

    name: str
    triggers: dict[str, Any] = field(default_factory=dict)
    actions: dict[str, Any] = field(default_factory=dict)
    workflows: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    schedules: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    """The functions that the functions of actions call."""
    files: dict[str, Path] = field(default_factory=dict)
    """The programs that the functions run, by their path in the project."""
    about: dict[str, Any] = field(default_factory=dict)
    """The description in the source, for the README."""

    @property
    def module(self) -> str:
        return f"{self.name}_actions"

    def function(self, name: str, source: str) -> dict[str, Any]:
        """Return the keys of an action that runs the first function of this source."""
        self.functions[name] = source
        return {"function": f"{self.module}:{_python_name(source)}"}

    def write(self, folder: Path, source: str, report: Report) -> None:
        """Write the project into a folder that is empty or does not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        head = {
            "name": self.name,
            "description": f"Imported from {source}; IMPORT.md lists the remaining work.",
        }
        _write(folder / "pack.yaml", head)
        for section in ("triggers", "actions", "workflows", "rules", "schedules"):
            if getattr(self, section):
                _write(folder / f"{section}.yaml", getattr(self, section))
        if self.functions:
            (folder / f"{self.module}.py").write_text(self.python())
        for name, file in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / name)
            (folder / name).chmod((folder / name).stat().st_mode | 0o111)
        (folder / "IMPORT.md").write_text(report.page(source))
        about = yaml.safe_dump(_plain(self.about), allow_unicode=True, sort_keys=False) if self.about else ""
        (folder / "README.md").write_text(
            f"# {self.name}\n\nImported from {source}; [IMPORT.md](IMPORT.md) lists the remaining work by hand.\n\n"
            + (f"```yaml\n{about}```\n\n" if about else "")
            + "    penstock lint .           # all that is wrong with it, at once\n"
            "    penstock dev --module .   # run it: everything in this terminal, PostgreSQL included\n"
        )
        (folder / ".gitignore").write_text(GITIGNORE)

    def python(self) -> str:
        """Return the module of the functions."""
        parts = [function.strip() for function in (*self.helpers.values(), *self.functions.values())]
        whole = "\n\n\n".join(parts)
        needed = [f"import {module}" for module in _MODULES if re.search(rf"\b{module}\.", whole)]
        if "jinja2." in whole:
            needed += ["", "import jinja2"]
        steering = [
            name
            for name in ("NonRetryable", "Retry", "current")
            if re.search(rf"\b{name}\b" + (r"\(\)" if name == "current" else ""), whole)
        ]
        if steering:
            needed += ["", f"from penstock import {', '.join(steering)}"]
        if "OutsideRun" in whole:
            needed += ["from penstock.errors import OutsideRun"]
        return "\n".join([_MODULE, *needed]).rstrip() + "\n\n\n" + whole + "\n"


def bounded(name: str) -> str:
    """Return a name that is short enough for a ref. A longer name is cut, and ends with a digest of the whole name."""
    if len(name) <= _MAX_NAME:
        return name
    return f"{name[: _MAX_NAME - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def stub(name: str, was: str) -> str:
    """Return the source of a function that is to be written by hand."""
    message = f"to do: what {was} did"
    return f"def {name}_(**parameters):\n    raise NonRetryable({message!r})\n"


def _python_name(source: str) -> str:
    return source.strip().removeprefix("async ").removeprefix("def ").partition("(")[0]


def _write(file: Path, content: Any) -> None:
    text = yaml.dump(_plain(content), Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=110)
    file.write_text(text)


def _plain(value: Any) -> Any:
    """Return a value without the classes that remember lines."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
