from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import marks
from tests.crash.processes import python_path


def test_marks_that_another_process_leaves_are_seen_here(tmp_path: Path) -> None:
    path = tmp_path / "marks"
    board = marks.Marks(path, create=True)
    subprocess.run(
        [sys.executable, "-c", "from bench.marks import noop\nassert noop(7) == 7\nnoop(-1)"],
        env=os.environ | {marks.VARIABLE: str(path), "PYTHONPATH": python_path()},
        check=True,
    )
    assert [bool(at) for at in board.begun(6, 3)] == [False, True, False]
    (start,), (end,) = board.begun(7, 1), board.ended(7, 1)
    assert end >= start
    assert board.ended(marks.SLOTS - 1, 1) == [0.0]
