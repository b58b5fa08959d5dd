"""Events of a repository: its commits, or the files at hand where there is no history to speak of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NO_COMMIT = ""
"""Instead of a commit's hash: the file as it is now."""
FEW = 5
"""With fewer commits than this (a shallow clone, say) the files tell more than the history."""
PER_COMMIT = 20
"""Python files of one commit that are looked at, at the most."""
BATCH = 8
"""Files at hand that stand for a commit."""
LARGEST = 400_000
"""Bytes of a file at hand that is still looked at."""
DOCUMENTS = (".md", ".rst", ".txt", ".adoc")
NOT_OURS = ("node_modules", "venv", "build", "dist", "site-packages", "__pycache__")

FIELDS = "%x00%H%x09%cI%x09%s"


def events(folder: Path, *, commits: int, files: int) -> tuple[str, list[dict[str, Any]]]:
    """Return the history in words, and as payloads of git.commit, newest first: at most so many commits, and of them as many
    as have so many Python files."""
    top = _git(folder, "rev-parse", "--show-toplevel").strip()
    history = list(_commits(Path(top), commits)) if top else []
    if len(history) >= FEW:
        payloads = _until(history, files)
        return f"the {len(payloads)} newest commits of {Path(top).name}", payloads
    payloads = _until(list(_files(folder)), files)
    why = "hardly any history" if history else "no git history"
    return f"the files of {folder.name}, there being {why} here", payloads


def content(folder: Path, commit: str, path: str) -> str:
    """A file as it was in a commit, or as it is. Raises FileNotFoundError."""
    if commit == NO_COMMIT:
        return (folder / path).read_text(errors="replace")
    process = subprocess.run(
        ["git", "show", f"{commit}:{path}"], cwd=folder, capture_output=True, check=False
    )
    if process.returncode != 0:
        raise FileNotFoundError(process.stderr.decode(errors="replace").strip())
    return process.stdout.decode(errors="replace")


def _commits(folder: Path, limit: int) -> Iterator[dict[str, Any]]:
    log = ["log", "-n", str(limit), "--no-merges", "--no-renames", "--no-ext-diff", f"--format={FIELDS}"]
    # What a commit deleted counts, but cannot be looked at.
    present = {}
    for entry in _git(folder, *log, "--name-only", "--diff-filter=d").split("\0")[1:]:
        head, _, names = entry.partition("\n")
        present[head.split("\t")[0]] = names.split("\n")
    for entry in _git(folder, *log, "--numstat").split("\0")[1:]:
        head, _, lines = entry.partition("\n")
        sha, at, subject = head.split("\t", 2)
        remaining = present.get(sha, [])  # git leaves out commits that only deleted
        counts = [line.split("\t", 2) for line in lines.split("\n") if line]
        yield {
            "folder": str(folder),
            "sha": sha,
            "at": at,
            "subject": subject,
            "files": len(counts),
            "insertions": sum(int(added) for added, _, _ in counts if added != "-"),
            "deletions": sum(int(removed) for _, removed, _ in counts if removed != "-"),
            "python": [path for path in remaining if path.endswith(".py")][:PER_COMMIT],
            "documents": [path for path in remaining if path.endswith(DOCUMENTS)],
        }


def _files(folder: Path) -> Iterator[dict[str, Any]]:
    paths = sorted(_texts(folder))
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        yield {
            "folder": str(folder),
            "sha": NO_COMMIT,
            "subject": batch[0] if len(batch) == 1 else f"{batch[0]} to {batch[-1]}",
            "files": len(batch),
            "insertions": sum(len(content(folder, NO_COMMIT, path).splitlines()) for path in batch),
            "deletions": 0,
            "python": [path for path in batch if path.endswith(".py")],
            "documents": [path for path in batch if path.endswith(DOCUMENTS)],
        }


def _texts(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in NOT_OURS]
        for name in names:
            path = Path(parent, name)
            if name.endswith((".py", *DOCUMENTS)) and path.is_file() and path.stat().st_size < LARGEST:
                yield path.relative_to(folder).as_posix()


def _until(payloads: list[dict[str, Any]], files: int) -> list[dict[str, Any]]:
    selected: list[dict[str, Any]] = []
    count = 0
    for payload in payloads:
        count += len(payload["python"])
        if selected and count > files:
            break
        selected.append(payload)
    return selected


def _git(folder: Path, *words: str) -> str:
    """Return the output of git, or nothing where there is no git, no repository, or none that it trusts."""
    try:
        run = subprocess.run(
            ["git", "-c", "core.quotePath=false", *words], cwd=folder, capture_output=True, check=False
        )
    except FileNotFoundError:
        return ""
    return run.stdout.decode(errors="replace") if run.returncode == 0 else ""
