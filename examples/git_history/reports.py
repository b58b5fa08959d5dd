"""The reports of the measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

MOST = 5


def of_commit(sha: str, subject: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    """The measured Python files of one commit, together."""
    by_complexity = sorted(files, key=_complexity, reverse=True)
    return {
        "sha": sha,
        "subject": subject,
        "paths": [file["path"] for file in files],
        "lines": sum(file["lines"] for file in files),
        "functions": sum(file["functions"] for file in files),
        "classes": sum(file["classes"] for file in files),
        "unreadable": [file["path"] for file in files if "unreadable" in file],
        "most_complex": [
            {"path": file["path"], **file["most_complex"]} for file in by_complexity[:3] if _complexity(file)
        ],
    }


def of_documents(texts: Iterable[str]) -> dict[str, Any]:
    """Words and headings of documents."""
    words = headings = 0
    for text in texts:
        words += len(text.split())
        headings += sum(line.startswith("#") for line in text.splitlines())
    return {"words": words, "headings": headings}


def of_history(
    commits: list[dict[str, Any]], large: list[dict[str, Any]], documents: list[dict[str, Any]]
) -> dict[str, Any]:
    """All commits (newest first), together. Of a function that several commits changed, the newest measure counts."""
    functions: dict[tuple[str, str], int] = {}
    for commit in commits:
        for measure in commit["most_complex"]:
            functions.setdefault((measure["path"], measure["name"]), measure["complexity"])
    changes = Counter(path for commit in commits for path in commit["paths"])
    return {
        "commits_with_python": len(commits),
        "files_measured": sum(len(commit["paths"]) for commit in commits),
        "lines_read": sum(commit["lines"] for commit in commits),
        "functions_read": sum(commit["functions"] for commit in commits),
        "most_complex": [
            {"path": path, "name": name, "complexity": measure}
            for (path, name), measure in sorted(functions.items(), key=lambda item: -item[1])[:MOST]
        ],
        "most_changed": [{"path": path, "commits": count} for path, count in changes.most_common(MOST)],
        "largest": sorted(large, key=lambda commit: -commit["lines"])[:MOST],
        "words_in_documents": sum(measure["words"] for measure in documents),
    }


def _complexity(file: dict[str, Any]) -> int:
    complexity: int = file.get("most_complex", {}).get("complexity", 0)
    return complexity
