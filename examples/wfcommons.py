"""Real graphs: scientific workflows in the public WfCommons format (WfFormat 1.0 to 1.6), run as sleeping tasks.

    python examples/wfcommons.py montage.json --scale 0.01 > montage.yaml    # then apply it, and run it
    workflow = load("montage.json", scale=0.01)

Each task of the instance becomes a task that sleeps as long as it ran when the instance was recorded, times `scale`,
and hands on the sizes of the files that it wrote. A task comes after its parents; where an instance does not name a
task's parents, after those that write the files it reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.definitions import Pack, action
from penstock.sources import Source
from penstock.workflows import Workflow, to_yaml
from penstock.workflows.reading import from_value

pack = Pack("wfcommons")


@action
async def work(program: str, seconds: float, writes: dict[str, int]) -> dict[str, int]:
    """Stands for a task of the instance: it takes its time, and gives the sizes of its files."""
    await asyncio.sleep(seconds)
    return writes


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
                seconds=float(ran.get(task["id"], {}).get("runtimeInSeconds", 0)),
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
        seconds=float(task.get("runtimeInSeconds", task.get("runtime", 0))),
        parents=list(task.get("parents", ())),
        children=list(task.get("children", ())),
        reads=[file["name"] for file, link in files if link == "input"],
        writes={
            file["name"]: int(file.get("sizeInBytes", file.get("size", 0)))
            for file, link in files
            if link != "input"
        },
    )


def document(jobs: Iterable[Job], ref: str, title: str, scale: float) -> dict[str, Any]:
    """The workflow as it would be written in YAML."""
    jobs = list(jobs)
    names = _names(jobs)
    known = {job.name: job.id for job in jobs} | {job.id: job.id for job in jobs}
    needs: dict[str, dict[str, None]] = {
        job.id: {known[parent]: None for parent in job.parents if parent in known} for job in jobs
    }
    for job in jobs:
        for child in job.children:
            if child in known:
                needs[known[child]][job.id] = None
    writers = {file: job.id for job in reversed(jobs) for file in job.writes}
    for job in jobs:
        if not needs[job.id]:
            found = (writers.get(file) for file in job.reads)
            needs[job.id] = {writer: None for writer in found if writer is not None and writer != job.id}
    last = [job.id for job in jobs if all(job.id not in before for before in needs.values())]
    return {
        "workflow": ref,
        "description": title,
        "tasks": {
            names[job.id]: {
                "action": "wfcommons.work",
                "input": {
                    "program": job.name,
                    "seconds": round(max(0.0, job.seconds) * scale, 6),
                    "writes": job.writes,
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
    taken: set[str] = set()
    for job in jobs:
        name = word = _word(job.name)
        number = 2
        while name in taken:
            name, number = f"{word}_{number}", number + 1
        taken.add(name)
        names[job.id] = name
    return names


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
