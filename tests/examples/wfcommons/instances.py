"""Instances in the shapes of two well-known scientific workflows, of about a thousand tasks each, in the public format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

IMAGES = 200
LANES = 240


def tasks(instance: dict[str, Any]) -> list[dict[str, Any]]:
    """The tasks of an instance, each with its name and the names of its parents."""
    workflow = instance["workflow"]
    tasks_of_file: list[dict[str, Any]] = workflow.get("specification", workflow)["tasks"]
    return tasks_of_file


def montage() -> dict[str, Any]:
    """A mosaic of images, in format 1.4: projected, compared with their neighbours, a model of their backgrounds fitted, and
    with that corrected and added. Tasks say themselves which files they read and write."""
    jobs: dict[str, dict[str, Any]] = {}

    def add(
        name: str, parents: Iterable[str], reads: Iterable[str], writes: Iterable[str], seconds: float
    ) -> None:
        files = [{"link": "input", "name": file, "sizeInBytes": 4_150_080} for file in reads]
        files += [{"link": "output", "name": file, "sizeInBytes": 4_150_080} for file in writes]
        jobs[name] = {
            "name": name,
            "type": "compute",
            "parents": list(parents),
            "children": [],
            "files": files,
            "avgCPU": 97.5,
            "priority": 20,
            "machine": "node-1",
            "id": f"ID{len(jobs) + 1:07}",
            "category": name.partition("_")[0],
            "command": {"program": name.partition("_")[0], "arguments": []},
            "runtimeInSeconds": seconds,
            "memoryInBytes": 14_800_000,
        }
        for parent in jobs[name]["parents"]:
            jobs[parent]["children"].append(name)

    for n in range(IMAGES):
        add(f"mProject_{n}", (), [f"raw-{n}.fits", "region.hdr"], [f"p-{n}.fits", f"p-{n}_area.fits"], 16.7)
    pairs = [(n, n + step) for step in (1, 2, 20) for n in range(IMAGES - step)]
    for first, right in pairs:
        add(
            f"mDiffFit_{first}_{right}",
            [f"mProject_{first}", f"mProject_{right}"],
            [f"p-{first}.fits", f"p-{right}.fits", "region.hdr"],
            [f"fit-{first}-{right}.txt"],
            0.1,
        )
    fits = [f"fit-{first}-{right}.txt" for first, right in pairs]
    add("mConcatFit", [f"mDiffFit_{first}_{right}" for first, right in pairs], fits, ["fits.tbl"], 1.5)
    add("mBgModel", ["mConcatFit"], ["fits.tbl"], ["corrections.tbl"], 30.0)
    for n in range(IMAGES):
        add(
            f"mBackground_{n}",
            [f"mProject_{n}", "mBgModel"],
            [f"p-{n}.fits", f"p-{n}_area.fits", "corrections.tbl"],
            [f"c-{n}.fits"],
            2.0,
        )
    corrected = [f"c-{n}.fits" for n in range(IMAGES)]
    add("mImgtbl", [f"mBackground_{n}" for n in range(IMAGES)], corrected, ["images.tbl"], 3.0)
    add("mAdd", ["mImgtbl", "mBackground_0"], [*corrected, "images.tbl"], ["mosaic.fits"], 40.0)
    add("mViewer", ["mAdd"], ["mosaic.fits"], ["mosaic.jpg"], 5.0)
    return {
        "name": "montage",
        "description": "Made in the shape of a mosaic",
        "createdAt": "2026-01-05T08:00:00.000000",
        "schemaVersion": "1.4",
        "wms": {"name": "none", "version": "0", "url": "https://example.org"},
        "workflow": {
            "executedAt": "01-05-26T08:00:00Z",
            "makespanInSeconds": 120,
            "machines": [{"nodeName": "node-1", "system": "linux", "cpu": {"count": 48, "speed": 1200}}],
            "tasks": list(jobs.values()),
        },
    }


def epigenomics() -> dict[str, Any]:
    """Reads of a sequencer, in format 1.5: split, each piece through four steps, merged again. What was specified stands
    apart from how it ran, and files stand in a list of their own."""
    steps = ("filterContams", "sol2sanger", "fast2bfq", "map")
    specified: dict[str, dict[str, Any]] = {}
    sizes: dict[str, int] = {"all.sfq": 90_000_000}

    def add(name: str, parents: list[str], reads: list[str], writes: list[str]) -> None:
        specified[name] = {
            "name": name,
            "id": name,
            "parents": parents,
            "children": [],
            "inputFiles": reads,
            "outputFiles": writes,
        }
        sizes.update(dict.fromkeys(writes, 120_000))
        for parent in parents:
            specified[parent]["children"].append(name)

    add("fastqSplit", [], ["all.sfq"], [f"piece-{n}.0" for n in range(LANES)])
    for n in range(LANES):
        previous = "fastqSplit"
        for number, step in enumerate(steps):
            name = f"{step}_{n}"
            add(name, [previous], [f"piece-{n}.{number}"], [f"piece-{n}.{number + 1}"])
            previous = name
    pieces = [f"piece-{n}.4" for n in range(LANES)]
    add("mapMerge", [f"map_{n}" for n in range(LANES)], pieces, ["merged.map"])
    add("maqIndex", ["mapMerge"], ["merged.map"], ["merged.index"])
    add("pileup", ["maqIndex"], ["merged.index"], ["merged.pileup"])
    return {
        "name": "epigenomics",
        "description": "Made in the shape of reads that are mapped",
        "createdAt": "2026-01-05T08:00:00+00:00",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": list(specified.values()),
                "files": [{"id": file, "sizeInBytes": size} for file, size in sizes.items()],
            },
            "execution": {
                "makespanInSeconds": 900,
                "executedAt": "2026-01-05T08:00:00+00:00",
                "tasks": [
                    {
                        "id": name,
                        "runtimeInSeconds": 12.5,
                        "command": {"program": name.partition("_")[0], "arguments": []},
                        "coreCount": 1,
                        "avgCPU": 95.0,
                        "machines": ["node-1"],
                    }
                    for name in specified
                ],
                "machines": [{"nodeName": "node-1"}],
            },
        },
    }
