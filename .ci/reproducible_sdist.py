"""Writes a source archive anew so that the same files give the same bytes: sorted, owned by nobody, of one instant."""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path


def rewrite(archive: Path, instant: int) -> None:
    with tarfile.open(archive) as given:
        files = [(member, given.extractfile(member)) for member in given.getmembers()]
        with (
            archive.with_suffix(".new").open("wb") as raw,
            gzip.GzipFile("", "wb", 9, raw, instant) as packed,
        ):
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
                for member, content in sorted(files, key=lambda one: one[0].name):
                    member.uid = member.gid = 0
                    member.uname = member.gname = ""
                    member.mtime = instant
                    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                    member.pax_headers = {}
                    new.addfile(member, content)
    archive.with_suffix(".new").replace(archive)


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"]))
