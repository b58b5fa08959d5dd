"""Calls of the actions that `penstock import openapi` makes, at a server that keeps the requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from penstock.cli import build
from penstock.language.loading import load_all
from penstock.run.task_executors import attempt
from penstock_worker.executors.http.http import HttpExecutor
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.web import Answer, Request, Web, serving

Operation = dict[str, Any]


class AnyPath(dict[str, Any]):
    """Routes that answer each path with an empty object."""

    def __init__(self, web: Web) -> None:
        self._web = web

    def __missing__(self, path: str) -> Any:
        self._web.answer(path, Answer(200, b"{}", {"Content-Type": "application/json"}))
        return self[path]


def document_of(operations: Mapping[str, Operation], **rest: Any) -> dict[str, Any]:
    """Return a document of operations by `METHOD /path`."""
    paths: dict[str, Any] = {}
    for key, operation in operations.items():
        method, _, path = key.partition(" ")
        paths.setdefault(path, {})[method.lower()] = {"responses": {}, **operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "calls", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:1"}],
        "paths": paths,
        **rest,
    }


def report_of(document: Mapping[str, Any], folder: Path, *options: str) -> str:
    """Import a document, and return its report without the columns of line numbers."""
    file = folder / "document.json"
    file.write_text(json.dumps(document))
    into = folder / "calls"
    ran = CliRunner().invoke(build(), ["import", "openapi", str(file), "--into", str(into), *options])
    assert ran.exit_code == 0, ran.output
    return (into / "IMPORT.md").read_text()


async def requests_of(
    document: Mapping[str, Any] | Callable[[str], Mapping[str, Any]],
    folder: Path,
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    *options: str,
    secrets: Mapping[str, str] | None = None,
) -> list[Request]:
    """Import a document, call its actions, and return the request of each call. A document that names its servers itself is
    a function of the URL of the server."""
    async with serving() as web:
        web.routes = AnyPath(web)
        if callable(document):
            report = report_of(document(web.url("")), folder, *options)
        else:
            report = report_of(document, folder, "--server", web.url(""), *options)
        actions = load_all(str(folder / "calls")).actions
        executor = HttpExecutor(allow=["127.0.0.1"])
        requests = []
        for name, params in calls:
            assert f"calls.{name}" in actions, f"{name} is missing: {report}"
            action = actions[f"calls.{name}"]
            values = {
                alias: (secrets or {}).get(stored, stored)
                for alias, stored in action.options.get("secrets", {}).items()
            }
            run, _ = run_of(dict(action.options), dict(params), secrets=values)
            outcome = await attempt(executor, run)
            assert outcome.kind == "completed", (name, outcome)
            requests.append(web.requests[-1])
        await executor.close(0)
        return requests
