"""The trigger, the rules, the actions and the workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import Pack, Rule, Trigger, action, each, workflow

from . import python_source, reports, repository

pack = Pack("git", description="What happened to a repository.")

commit = Trigger(
    "git.commit",
    schema={
        "folder": {"type": "string", "required": True},
        "sha": {"type": "string", "required": True},
        "subject": {"type": "string", "required": True},
        "at": {"type": "string"},
        "files": {"type": "integer", "required": True},
        "insertions": {"type": "integer", "required": True},
        "deletions": {"type": "integer", "required": True},
        "python": {"type": "array", "items": {"type": "string"}, "required": True},
        "documents": {"type": "array", "items": {"type": "string"}, "required": True},
    },
    description="Somebody committed something. Without history, a handful of files stands for a commit.",
)


@action
def measure_file(folder: str, sha: str, path: str) -> dict[str, Any]:
    """Parse a Python file as it was in a commit: its lines, functions, classes and how branched they are."""
    return {"path": path, **python_source.measure(repository.content(Path(folder), sha, path))}


@action
def sum_up(sha: str, subject: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    """The Python files of one commit, together."""
    return reports.of_commit(sha, subject, files)


@workflow
def survey(folder: str, sha: str, subject: str, paths: list[str]) -> Any:
    """Measure every Python file of a commit, each in an execution of its own, and sum them up."""
    measured = measure_file(folder=folder, sha=sha, path=each(paths))
    return sum_up(sha=sha, subject=subject, files=measured)


@action
def weigh(subject: str, insertions: int, deletions: int, files: int) -> dict[str, Any]:
    """Return the size of a large commit."""
    return {"subject": subject, "lines": insertions + deletions, "files": files}


@action
def read_documents(folder: str, sha: str, paths: list[str]) -> dict[str, Any]:
    """Count the words and headings of documents as they were in a commit."""
    return reports.of_documents(repository.content(Path(folder), sha, path) for path in paths)


@action
def report(
    commits: list[dict[str, Any]], large: list[dict[str, Any]], documents: list[dict[str, Any]]
) -> dict[str, Any]:
    """Everything together: what was measured, what is most complex, what changes most."""
    return reports.of_history(commits, large, documents)


Rule(
    "git.python_changed",
    trigger=commit,
    when="payload.python | length > 0",
    action=survey,
    params={
        "folder": "{{ payload.folder }}",
        "sha": "{{ payload.sha }}",
        "subject": "{{ payload.subject }}",
        "paths": "{{ payload.python }}",
    },
)
Rule(
    "git.large",
    trigger=commit,
    when="payload.insertions + payload.deletions > 1000",
    action=weigh,
    params={
        "subject": "{{ payload.subject }}",
        "insertions": "{{ payload.insertions }}",
        "deletions": "{{ payload.deletions }}",
        "files": "{{ payload.files }}",
    },
)
Rule(
    "git.documents_only",
    trigger=commit,
    when="payload.files > 0 and payload.files == payload.documents | length",
    action=read_documents,
    params={"folder": "{{ payload.folder }}", "sha": "{{ payload.sha }}", "paths": "{{ payload.documents }}"},
)
