"""Real graphs: scientific workflows in the public WfCommons format (WfFormat 1.0 to 1.6), run as sleeping tasks.

    python examples/wfcommons.py montage.json --scale 0.01 > montage.yaml    # then apply it, and run it
    workflow = load("montage.json", scale=0.01)

Each task of the instance becomes a task that sleeps as long as it ran when the instance was recorded, times `scale`,
and says how much it wrote. A task comes after its parents, and after those that name it as their child. Without any,
it comes after those that write the files it reads. Parents that are no tasks of the instance are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Workflow
from penstock.language.definitions import Pack, action
from penstock.language.terms.sources import Source
from penstock.language.workflows import to_yaml
from penstock.language.workflows.serialization import from_value

pack = Pack("wfcommons")


LAST = 20
"""Of so many tasks that come last the results are in the output."""


@action(timeout="1d")
async def work(program: str, seconds: float, files: int, bytes: int) -> dict[str, int]:
    """Stands for a task of the instance: it takes its time, and says how many files and bytes it wrote."""
    await asyncio.sleep(seconds)
    return {"files": files, "bytes": bytes}


@dataclass
class Job:
    """A task of an instance. `id` is unique in it; parents and children are ids or names."""

    id: str
    name: str
    seconds: float = 0.0
    parents: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: dict[str, int] = field(default_factory=dict)


def load(path: str | Path, *, scale: float = 0.01, ref: str | None = None) -> Workflow:
    """The workflow of an instance. Raises DefinitionError if it is none."""
    source = Source(str(path), 1)
    try:
        instance = json.loads(Path(path).read_text())
        jobs = read(instance)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise source.wrong(f"it is not in the WfCommons format: {type(error).__name__}: {error}") from None
    ref = ref or f"wfcommons.{_word(Path(path).stem).lower()}"[:64]
    return from_value(document(jobs, ref, str(instance.get("name", "")), scale), source)


def read(instance: Mapping[str, Any]) -> list[Job]:
    """The tasks of an instance, of any version of the format."""
    workflow = instance["workflow"]
    if "specification" in workflow:  # from 1.5 on
        sizes = {file["id"]: file["sizeInBytes"] for file in workflow["specification"].get("files", ())}
        ran = {task["id"]: task for task in workflow.get("execution", {}).get("tasks", ())}
        return [
            Job(
                id=task["id"],
                name=task["name"],
                seconds=float(ran.get(task["id"], {}).get("runtimeInSeconds") or 0),
                parents=list(task.get("parents", ())),
                children=list(task.get("children", ())),
                reads=list(task.get("inputFiles", ())),
                writes={file: sizes.get(file, 0) for file in task.get("outputFiles", ())},
            )
            for task in workflow["specification"]["tasks"]
        ]
    tasks = workflow["tasks"] if "tasks" in workflow else workflow["jobs"]
    return [_of_old(task, number) for number, task in enumerate(tasks)]


def _of_old(task: Mapping[str, Any], number: int) -> Job:
    """Up to 1.4: tasks refer to each other by name, and say themselves what they read and write."""
    files = [(file, str(file.get("link", "")).lower()) for file in task.get("files", ())]
    return Job(
        id=str(task.get("id", number)),
        name=task["name"],
        seconds=float(task.get("runtimeInSeconds") or task.get("runtime") or 0),
        parents=list(task.get("parents", ())),
        children=list(task.get("children", ())),
        reads=[file["name"] for file, link in files if link == "input"],
        writes={
            file["name"]: int(file.get("sizeInBytes") or file.get("size") or 0)
            for file, link in files
            if link != "input"
        },
    )


def document(jobs: Iterable[Job], ref: str, title: str, scale: float) -> dict[str, Any]:
    """The workflow as it would be written in YAML."""
    jobs = list(jobs)
    names = _names(jobs)
    id_of = {job.name: job.id for job in jobs} | {job.id: job.id for job in jobs}
    needs: dict[str, dict[str, None]] = {
        job.id: {id_of[parent]: None for parent in job.parents if parent in id_of} for job in jobs
    }
    for job in jobs:
        for child in job.children:
            if child in id_of:
                needs[id_of[child]][job.id] = None
    writers = {file: job.id for job in reversed(jobs) for file in job.writes}
    for job in jobs:
        if not needs[job.id]:
            producers = {writers[file] for file in job.reads if file in writers}
            # A file that is changed in place has writers after its first readers.
            needs[job.id] = dict.fromkeys(sorted(producers - _after(job.id, needs)) if producers else ())
    followed = {parent for before in needs.values() for parent in before}
    last = [job.id for job in jobs if job.id not in followed][-LAST:]
    return {
        "workflow": ref,
        "description": title,
        "tasks": {
            names[job.id]: {
                "action": "wfcommons.work",
                "input": {
                    "program": job.name,
                    "seconds": round(max(0.0, job.seconds) * scale, 6),
                    "files": len(job.writes),
                    "bytes": sum(job.writes.values()),
                },
                "needs": [names[id] for id in needs[job.id]],
            }
            for job in jobs
        },
        "output": {
            "tasks": len(jobs),
            "last": {names[id]: f"{{{{ tasks.{names[id]}.result }}}}" for id in last},
        },
    }


def _names(jobs: Iterable[Job]) -> dict[str, str]:
    """A name for each task, which has to be a word."""
    names: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for job in jobs:
        name = word = _word(job.name)
        while name in uses:
            uses[word] += 1
            name = f"{word}_{uses[word]}"
        uses[name] = 1
        names[job.id] = name
    return names


def _after(id: str, needs: Mapping[str, Iterable[str]]) -> set[str]:
    """The task itself, and all that come after it."""
    children: dict[str, list[str]] = {}
    for child, parents in needs.items():
        for parent in parents:
            children.setdefault(parent, []).append(child)
    later, pending = {id}, [id]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in later:
                later.add(child)
                pending.append(child)
    return later


def _word(text: str) -> str:
    word = re.sub(r"\W+", "_", text, flags=re.ASCII)[:80]
    return word if word[:1].isalpha() else f"t_{word}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A WfCommons instance as a Penstock workflow, in YAML.")
    parser.add_argument("instance", type=Path)
    parser.add_argument("--scale", type=float, default=0.01, help="seconds to sleep for each recorded second")
    parser.add_argument("--ref", help="such as wfcommons.montage")
    given = parser.parse_args()
    print(to_yaml(load(given.instance, scale=given.scale, ref=given.ref)), end="")
